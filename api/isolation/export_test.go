package isolation

// Shared is shared, for its test.
var Shared = shared
