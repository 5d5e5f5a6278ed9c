package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/packaging/testenv"
)

// TestTopologyReadAgain: SIGHUP puts another file into force; one that is cut off, or
// that guards refuse, changes nothing, however often it is read.
func TestTopologyReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	net, file, law := filepath.Join(dir, "net"), filepath.Join(dir, "sm.yaml"), filepath.Join(dir, "topoconfig.conf")
	write(t, net, oneSwitch)
	write(t, file, "fabric:\n  topology: {file: topoconfig.conf, mode: enforce}\n")
	const leaf, end = "0x0000000000100000,", ",1,Any,Active\n"
	good := leaf + "1,0x0000000000200000" + end + leaf + "2,0x0000000000300000" + end + leaf + "8,0x0000000000400000" + end
	write(t, law, good)
	address := testenv.Address(t)
	d := launch(t, exec.Command("portcullisd", "sm", "--port", "sim:"+net, "--config", file, "--metrics", address))
	inForce := func(links int) func() (bool, string) {
		return func() (bool, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
			if err != nil {
				return false, err.Error()
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return false, err.Error() + d.lines.String()
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			text := string(body)
			return err == nil && strings.Contains(text, fmt.Sprintf(`portcullis_topology_links{state="verified"} %d`, links)) &&
				strings.Contains(text, fmt.Sprintf(`portcullis_topology_links{state="expected"} %d`, links)) &&
				strings.Contains(text, `portcullis_topology_mode{mode="enforce"} 1`), text + d.lines.String()
		}
	}
	says := func(what string, times int) func() (bool, string) {
		return func() (bool, string) {
			said := d.lines.String()
			return strings.Count(said, what) == times, said
		}
	}
	eventually(t, "enforcement", inForce(3))

	write(t, law, strings.TrimSuffix(good, "\n"))
	hangUp(t, d)
	eventually(t, "the complaint about a file that is cut off", says("the last line has no end", 1))

	write(t, law, strings.ReplaceAll(good, "00100000", "00777777"))
	for times := 1; times <= 2; times++ {
		hangUp(t, d)
		eventually(t, "the refusal of a foreign file", says("the declared topology is refused; the one that was in force stays in force", times))
	}
	if ok, said := inForce(3)(); !ok {
		t.Errorf("what was in force is not any more:\n%s", said)
	}

	write(t, law, leaf+"1,0x0000000000200000"+end+leaf+"2,-,-,Any,Disabled\n"+leaf+"8,0x0000000000400000"+end)
	hangUp(t, d)
	eventually(t, "the other topology", inForce(2))
}
