package import PinproxyEventLoop

extension NetworkMonitor {
    package static func lookUp(by resolver: Resolver) -> LookUp {
        { name, completion in
            resolver.resolve(name) { result in
                switch result {
                case .success(let addresses): completion(.found(addresses))
                case .failure(let error):
                    switch error {
                    case .notFound, .noAddresses, .invalidName: completion(.noSuchHost("\(error)"))
                    case .timedOut, .serverFailure, .noDescriptors, .cancelled: completion(.failed)
                    }
                }
            }
        }
    }
}
