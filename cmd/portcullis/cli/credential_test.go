package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChooseCredential: the first place that names files of a credential decides, and a place that names half of one or two is refused.
func TestChooseCredential(t *testing.T) {
	token, cert := credentialFiles{tokenFile: "t"}, credentialFiles{certFile: "c", keyFile: "k"}
	for name, tt := range map[string]struct {
		flags, env, file, want credentialFiles
		wrong                  string
	}{
		"none":                  {},
		"flag before all":       {flags: cert, env: token, file: token, want: cert},
		"token flag before all": {flags: token, env: cert, file: cert, want: token},
		"environment":           {env: cert, file: token, want: cert},
		"file":                  {file: cert, want: cert},
		"two flags":             {flags: credentialFiles{"t", "c", "k"}, wrong: "the command line names a token and a client certificate"},
		"two in the file":       {file: credentialFiles{"t", "c", "k"}, wrong: "names a token and a client certificate"},
		"no key":                {env: credentialFiles{certFile: "c"}, file: token, wrong: "the environment names a client certificate and no key"},
		"no certificate":        {flags: credentialFiles{keyFile: "k"}, env: cert, wrong: "the command line names the key of a client certificate and no certificate"},
		"a key and a token":     {flags: credentialFiles{tokenFile: "t", keyFile: "k"}, wrong: "names a token and a client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(EnvTokenFile, tt.env.tokenFile)
			t.Setenv(EnvClientCert, tt.env.certFile)
			t.Setenv(envClientKey, tt.env.keyFile)
			file := filepath.Join(t.TempDir(), "config.yaml")
			var text strings.Builder
			text.WriteString("service: https://a\n")
			for key, value := range map[string]string{"token_file": tt.file.tokenFile, "client_cert": tt.file.certFile, "client_key": tt.file.keyFile} {
				if value != "" {
					text.WriteString(key + ": " + value + "\n")
				}
			}
			if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			c := connection{credentialFiles: tt.flags, configFile: file}
			err := c.complete()
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("%v, want %q", err, tt.wrong)
				}
				return
			}
			want := tt.want
			if tt.flags == (credentialFiles{}) && tt.env == (credentialFiles{}) && want != (credentialFiles{}) {
				want = credentialFiles{certFile: filepath.Join(filepath.Dir(file), "c"), keyFile: filepath.Join(filepath.Dir(file), "k")}
			}
			if err != nil || c.credentialFiles != want {
				t.Errorf("%+v, %v, want %+v", c.credentialFiles, err, want)
			}
		})
	}
}
