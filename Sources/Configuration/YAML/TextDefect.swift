/// What keeps a file from being read as YAML, and where; line and column from 1.
struct TextDefect: Error, Equatable {
    var line: Int
    var column: Int
    var message: String
}
