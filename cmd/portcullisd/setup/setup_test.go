package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/cmd/portcullisd/command"
)

// TestInitLeavesNothingHalfDone: an installation that failed can be tried again.
func TestInitLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := writeFresh(dir, []newFile{{"tls/ca.pem", []byte("a"), 0o644}, {"tokens.yaml", []byte("b"), 0o600}, {"nowhere/c", []byte("c"), 0o600}})
	if err == nil || !strings.Contains(command.HintOf(err), "no file was left behind") {
		t.Fatalf("writing into a folder that is not there: %v", err)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) != 1 { // the folder tls
		t.Errorf("left behind: %v, %v", files, err)
	}
	if err := writeFresh(dir, []newFile{{"tls/ca.pem", []byte("a"), 0o644}}); err != nil {
		t.Error(err)
	}
}

// The command makes tokens that end, unless it is asked for others.
func TestTokenCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		days int
	}{{nil, tokenDays}, {[]string{"--days", "30"}, 30}, {[]string{"--days", "0"}, 0}} {
		var token, entry strings.Builder
		now := time.Now()
		if err := Token(append([]string{"--name", "ci", "--role", "viewer"}, tt.args...), &token, &entry); err != nil {
			t.Fatal(err)
		}
		_, lines, _ := strings.Cut(entry.String(), "\n")
		tokens, err := credential.Parse("t", []byte("tokens:\n"+lines))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(strings.TrimSpace(token.String())))
		if !strings.Contains(lines, hex.EncodeToString(sum[:])) {
			t.Errorf("%v: the entry is not that of the token:\n%s", tt.args, lines)
		}
		p := tokens.All()[0]
		if want := now.AddDate(0, 0, tt.days); p.Created.IsZero() || tt.days == 0 && !p.Expires.IsZero() || tt.days > 0 && p.Expires.Sub(want).Abs() > time.Minute {
			t.Errorf("%v: %+v, want an end after %d days", tt.args, p, tt.days)
		}
	}
	for _, days := range []string{"-1", "3651"} {
		var out, errs strings.Builder
		if err := Token([]string{"--name", "ci", "--role", "viewer", "--days", days}, &out, &errs); err == nil || out.Len() > 0 {
			t.Errorf("--days %s: %v, %s", days, err, &out)
		}
	}
}

// TestTokenOfWrongEntry: options that make an entry which no service takes are an error that names the file and the options.
func TestTokenOfWrongEntry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"p_keys", []string{"--role", "scheduler", "--p-keys", "train"}},
		{"hosts is for tokens with p_keys", []string{"--role", "scheduler", "--hosts", "gpu-*"}},
		{"tenants", []string{"--role", "viewer", "--tenant", "acme"}},
	} {
		var out, errs strings.Builder
		err := Token(append([]string{"--name", "ci"}, tt.args...), &out, &errs)
		for _, want := range []string{tt.want, `token 1 ("ci")`, "tokens file (tokens in portcullisd.yaml)", "correct --name, --role, --p-keys"} {
			if err == nil || out.Len() > 0 || !strings.Contains(errs.String(), want) {
				t.Errorf("%v: %v, want %q:\n%s", tt.args, err, want, errs.String())
			}
		}
	}
}
