package agent

// WriteFile is how files of the state folder are written.
var WriteFile = writeFile

// UseCA is UseCredentials with another standard place.
var UseCA = (*Config).useCA

// SetWrite has a run write its files in another way.
func SetWrite(o *Options, write func(path string, data []byte) error) { o.write = write }
