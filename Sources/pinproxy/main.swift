print("pinproxy")
