import HTTPWire
import Configuration
struct RefusalReport { var status: Int; var reasonPhrase: String; var proxyStatusError: String; var details: String; var title: String; var body: [String]; var host: String = ""; var extraFields: [(String,String)] = []; var keepAlive = false 
 init(status: Int, reasonPhrase: String, proxyStatusError: String, details: String, title: String, body: [String], host: String = "") { self.status = status; self.reasonPhrase = reasonPhrase; self.proxyStatusError = proxyStatusError; self.details = details; self.title = title; self.body = body; self.host = host } }
enum RefusalResponse { static func bytes(for r: RefusalReport, toHead: Bool, prefersHTML: Bool) -> [UInt8] { Array("HTTP/1.1 \(r.status) \(r.reasonPhrase)\r\nContent-Length: 0\r\n\r\n".utf8) } }
enum UsagePage { static func response(toHead: Bool, prefersHTML: Bool) -> [UInt8] { [] } }
enum Accept { static func prefersHTML(_ b: Span<UInt8>) -> Bool { false } }
final class UserVerifier: Sendable { init(file: UserFile) throws {}
 struct Credentials {}
 func credentials(in r: RequestHead, _ b: Span<UInt8>) -> Credentials? { nil }
 func verify(_ c: Credentials, on w: Worker, _ f: (Bool)->Void) {} }
