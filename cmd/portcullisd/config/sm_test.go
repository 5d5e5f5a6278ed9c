package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"
)

// smArgs parses a command line of "portcullisd sm" and returns its complaints.
func smArgs(args ...string) (*SMOptions, string) {
	var complaint strings.Builder
	o, err := ParseSM(args, &complaint, &complaint)
	if err != nil && !errors.Is(err, command.ErrUsage) {
		command.Report(&complaint, err)
	}
	return o, complaint.String()
}

func TestSMOptionsOverrideTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sm.yaml")
	write(t, file, "fabric:\n  port: ibsim:a/b\n  priority: 3\n  sm_key_file: key\n  timeout: 50ms\n  ports: {max_mtu: 1024}\n")
	o, complaint := smArgs("--priority", "9", "--config", file, "--once", "--max-vls", "4")
	if o == nil || complaint != "" {
		t.Fatalf("refused: %s", complaint)
	}
	f := &o.Config.Fabric
	if !o.Once || f.Port != "ibsim:a/b" || f.Priority != 9 || f.Timeout != 50*time.Millisecond || f.Ports.MaxMTU != 1024 || f.Ports.MaxVLs != 4 {
		t.Errorf("options %+v, %+v do not follow file and command line", o, f)
	}
	if key := o.Config.Path(f.SMKeyFile); key != filepath.Join(filepath.Dir(file), "key") {
		t.Errorf("sm_key_file is looked for at %s", key)
	}
	core, err := f.Core(o.Config.Path)
	if err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("a missing SM_Key file gives %v", err)
	}
	if core.Priority != 9 || core.Ports.MaxMTU.Bytes() != 1024 || core.Ports.MaxOperationalVLs.Count() != 4 {
		t.Errorf("the core is told %+v", core)
	}
}

func TestSMOptionsAreCheckedWithTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sm.yaml")
	write(t, file, "fabric:\n  priority: 30\n  tmeout: 1s\n  smps:\n    window: 0\n")
	_, complaint := smArgs("--config", file, "--max-mtu", "9")
	for _, want := range []string{
		"--port is missing", "--max-mtu 9: want 256", file + ":2: fabric.priority: 30",
		file + ":3: unknown key tmeout; did you mean timeout?", file + ":5: fabric.smps.window: 0: want 1 to 1024",
	} {
		if !strings.Contains(complaint, want) {
			t.Errorf("the complaint lacks %q:\n%s", want, complaint)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"--config " + dir + "/none", "read configuration: open"},
		{"--priority 256", "want a number"},
		{"--port sim:x --allowed-sm none,0x0020000000000101", "--allowed-sm none is beside others"},
		{"--prefix fe80", "want 0x"},
		{"--port sim:x --prefix 0x1", "--prefix 0x0000000000000001: want a subnet prefix"},
	} {
		if _, complaint := smArgs(strings.Fields(tt.args)...); !strings.Contains(complaint, tt.want) {
			t.Errorf("%s: said %q, want %q", tt.args, complaint, tt.want)
		}
	}
}

// Every option is explained by --help and by the manual page, and only those.
func TestSMOptionsAreExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../packaging/man/portcullisd.8")
	if err != nil {
		t.Fatal(err)
	}
	_, manual, ok := strings.Cut(string(page), ".Ss portcullisd sm\n")
	if !ok {
		t.Fatal("portcullisd(8) has no section on portcullisd sm")
	}
	manual, _, _ = strings.Cut(manual, "\n.Sh ")
	for where, found := range map[string][][]string{
		"--help":         regexp.MustCompile(`(?m)^  --([a-z0-9-]+)`).FindAllStringSubmatch(SMUsage, -1),
		"portcullisd(8)": regexp.MustCompile(`(?m)^\.It Fl -([a-z0-9-]+)`).FindAllStringSubmatch(manual, -1),
	} {
		explained := map[string]bool{}
		for _, f := range found {
			explained[f[1]] = true
		}
		flags := (&SMOptions{Config: Default()}).flags()
		flags.VisitAll(func(f *flag.Flag) {
			if !explained[f.Name] {
				t.Errorf("%s does not explain --%s", where, f.Name)
			}
			delete(explained, f.Name)
		})
		for name := range explained {
			t.Errorf("%s explains --%s, which there is not", where, name)
		}
	}
}

// Every option with a key sets that key, and no two set the same.
func TestSMOptionsNameTheirKeys(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, key := range keysOf("", reflect.TypeFor[Fabric]()) {
		known["fabric."+key] = true
	}
	names := map[string]bool{}
	for key, name := range (&SMOptions{Config: Default()}).flags().option {
		if !known[key] {
			t.Errorf("--%s sets %s, which there is not", name, key)
		}
		if names[name] {
			t.Errorf("--%s sets several keys", name)
		}
		names[name] = true
	}
}
