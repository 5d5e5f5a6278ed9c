package cli

import "os"

// credentialFiles are the files of one credential: of a token, or of a certificate and its key. Without any, the session counts.
type credentialFiles struct{ tokenFile, certFile, keyFile string }

const hintCredential = "name either a token (--token-file), or a certificate and its key (--client-cert, --client-key)"

// chooseCredential returns the files of the first place that names some: flags, environment, the context or configuration file. So a
// certificate that a flag names is not sent with a token of the environment.
func (c *connection) chooseCredential(file *fileConfig) (credentialFiles, error) {
	for _, place := range []struct {
		name string
		credentialFiles
	}{
		{"the command line", c.credentialFiles},
		{"the environment", credentialFiles{os.Getenv(EnvTokenFile), os.Getenv(EnvClientCert), os.Getenv(envClientKey)}},
		{c.configFile, credentialFiles{file.TokenFile, file.CertFile, file.KeyFile}},
	} {
		f := place.credentialFiles
		if f == (credentialFiles{}) {
			continue
		}
		if wrong := f.wrong(); wrong != "" {
			return f, &UsageError{Msg: place.name + " " + wrong, Hint: hintCredential}
		}
		return f, nil
	}
	return credentialFiles{}, nil
}

// wrong returns what makes no sense of files that one place names; "" if nothing.
func (f *credentialFiles) wrong() string {
	switch {
	case f.tokenFile != "" && f.certFile+f.keyFile != "":
		return "names a token and a client certificate: a request has one credential"
	case f.certFile != "" && f.keyFile == "":
		return "names a client certificate and no key"
	case f.certFile == "" && f.keyFile != "":
		return "names the key of a client certificate and no certificate"
	}
	return ""
}
