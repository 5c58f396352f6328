// The room is filled in a later commit.
