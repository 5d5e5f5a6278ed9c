package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

// exposure is the most that `systemd-analyze security` may find wrong with a
// unit, in tenths: 25 is 2.5 of 10.
const exposure = "25"

var units = []string{"portcullisd.service", "portcullis-agent.service"}

// doctor is the agent's second unit, in the same sandbox.
const doctor = "portcullis-agent-doctor.service"

func TestUnitsAreLockedDown(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	for _, unit := range slices.Concat(units, []string{doctor}) {
		cmd := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold="+exposure, filepath.Join("systemd", unit))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestVendorToolsStayLockedDown adds the drop-in for the vendor's tools to the units that it is for. The exposure levels in
// its comment must be those that systemd computes.
func TestVendorToolsStayLockedDown(t *testing.T) {
	t.Parallel()
	analyze := testenv.Program(t, "systemd-analyze")
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	overall := func(text string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "portcullis-agent.service")
		write(t, file, []byte(text), 0o644)
		out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold="+exposure, file).CombinedOutput()
		_, score, ok := strings.Cut(string(out), "Overall exposure level for portcullis-agent.service: ")
		if err != nil || !ok {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Fields(score)[0]
	}
	drop := read("vendor-tools.conf")
	for _, unit := range []string{"portcullis-agent.service", doctor} {
		before, after := overall(read(unit)), overall(read(unit)+"\n"+drop)
		if says := "from " + before + " to " + after + "."; !strings.Contains(drop, says) {
			t.Errorf("%s: vendor-tools.conf does not say %q", unit, says)
		}
	}
}

// TestDoctorLooksFromTheCage checks that the two units of the agent are the same, except for how they start and end.
func TestDoctorLooksFromTheCage(t *testing.T) {
	t.Parallel()
	cage := func(unit string) (lines []string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), "\n[Service]\n")
		section, _, _ = strings.Cut(section, "\n[")
		for line := range strings.Lines(section) {
			line = strings.TrimSpace(line)
			key, _, _ := strings.Cut(line, "=")
			own := slices.Contains([]string{"Type", "NotifyAccess", "ExecStart", "RemainAfterExit", "Restart", "RestartSec", "RestartPreventExitStatus", "TimeoutStartSec", "TimeoutStopSec"}, key)
			if line != "" && line[0] != '#' && !own {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if d := cmp.Diff(cage("portcullis-agent.service"), cage(doctor)); d != "" {
		t.Errorf("cages (-agent +doctor):\n%s", d)
	}
}

// TestAgentMeasuresLast checks that the agent begins after systemd measured the last phase of its start
// (systemd-pcrphase.service(8)). Otherwise PCR 11 would differ from boot to boot.
func TestAgentMeasuresLast(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("systemd/portcullis-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	var after []string
	for line := range strings.Lines(string(text)) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "After="); ok {
			after = append(after, strings.Fields(names)...)
		}
	}
	if !slices.Contains(after, "systemd-pcrphase.service") {
		t.Errorf("the agent is ordered after %q alone, want systemd-pcrphase.service too", after)
	}
}

// TestUnitsVerify has systemd read the units with programs in their place. Any message from it is a failure, because it only
// warns of an unknown key.
func TestUnitsVerify(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	dir := t.TempDir()
	for _, unit := range slices.Concat(units, []string{doctor}) {
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("/usr/bin/portcullis"), []byte(dir+"/portcullis"))
		write(t, filepath.Join(dir, unit), text, 0o644)
	}
	write(t, filepath.Join(dir, "portcullisd"), nil, 0o755)
	write(t, filepath.Join(dir, "portcullis-agent"), nil, 0o755)
	for _, unit := range slices.Concat(units, []string{doctor}) {
		out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, unit)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestUnitsNotify checks that the units accept the notifications that the programs send to systemd.
func TestUnitsNotify(t *testing.T) {
	for _, unit := range units {
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"\nType=notify\n", "\nNotifyAccess=main\n"} {
			if !bytes.Contains(text, []byte(line)) {
				t.Errorf("%s does not say %q", unit, line)
			}
		}
	}
}

// settings returns the values that a unit assigns to a key, in order.
func settings(t *testing.T, unit, key string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("systemd", unit))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}

// TestUnitsGiveUp checks that a program that fails at once is not started again forever. systemd forgets starts that are
// older than the interval.
func TestUnitsGiveUp(t *testing.T) {
	t.Parallel()
	seconds := func(unit, key string) time.Duration {
		t.Helper()
		v := settings(t, unit, key)
		if len(v) != 1 {
			t.Fatalf("%s has %s %d times, want once", unit, key, len(v))
		}
		n, err := strconv.Atoi(strings.TrimSuffix(v[0], "s"))
		if err != nil {
			t.Fatalf("%s: %s=%s: %v", unit, key, v[0], err)
		}
		return time.Duration(n) * time.Second
	}
	for _, unit := range units {
		burst, err := strconv.Atoi(settings(t, unit, "StartLimitBurst")[0])
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Duration(burst) * seconds(unit, "RestartSec"); 2*took > seconds(unit, "StartLimitIntervalSec") {
			t.Errorf("%s: %d starts take %v at least, which hardly fits into StartLimitIntervalSec", unit, burst, took)
		}
	}
}

// TestAgentNotRestarted checks the exit codes that systemd itself reports for the agent against systemd's names for them.
// The agent's own codes are compared with its table where that is.
func TestAgentNotRestarted(t *testing.T) {
	t.Parallel()
	analyze := testenv.Program(t, "systemd-analyze")
	var named []string
	for _, line := range settings(t, "portcullis-agent.service", "RestartPreventExitStatus") {
		for word := range strings.FieldsSeq(line) {
			if _, err := strconv.Atoi(word); err != nil {
				named = append(named, word)
			}
		}
	}
	for _, need := range []string{"CREDENTIALS", "EXEC", "GROUP", "NAMESPACE", "SECCOMP", "USER"} {
		if !slices.Contains(named, need) {
			t.Errorf("the agent is started again after %s, which a person must mend", need)
		}
	}
	for _, name := range named {
		out, err := exec.Command(analyze, "exit-status", "--no-pager", name).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(" systemd\n")) {
			t.Errorf("systemd gives no exit code %s: %v\n%s", name, err, out)
		}
	}
}

// TestAgentMayOpenItsDevices checks that for each device that the unit's sandbox allows, udev grants access to a group that
// the agent is in.
func TestAgentMayOpenItsDevices(t *testing.T) {
	unit, err := os.ReadFile("systemd/portcullis-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("udev/60-portcullis-agent.rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct{ allow, subsystem, group string }{
		{"/dev/tpmrm0", "tpmrm", "tss"},
		{"char-fwctl", "fwctl", "portcullis-agent"},
		{"char-infiniband_mad", "infiniband_mad", "portcullis-umad"},
	} {
		if !bytes.Contains(unit, []byte("\nDeviceAllow="+d.allow+" rw\n")) {
			t.Errorf("the unit keeps the agent from %s", d.allow)
		}
		granted := false
		for line := range bytes.Lines(rules) {
			granted = granted || bytes.Contains(line, []byte(`SUBSYSTEM=="`+d.subsystem+`"`)) && bytes.Contains(line, []byte(`GROUP="`+d.group+`", MODE="0660"`))
		}
		if !granted {
			t.Errorf("no rule gives devices of %s to the group %s", d.subsystem, d.group)
		}
		if !slices.Contains(groups(t, "portcullis-agent.service"), d.group) {
			t.Errorf("the unit is not in the group %s", d.group)
		}
	}
}

// groups are those that a unit's program runs in.
func groups(t *testing.T, unit string) (names []string) {
	t.Helper()
	for _, key := range []string{"Group", "SupplementaryGroups"} {
		for _, line := range settings(t, unit, key) {
			names = append(names, strings.Fields(line)...)
		}
	}
	return names
}

// owner applies udev's rules to a device: of all that match, the last one counts
// (udev(7)). Rules here match by subsystem and by the kernel's name alone.
func owner(t *testing.T, subsystem, name string, files ...string) (group, mode string) {
	t.Helper()
	assignment := regexp.MustCompile(`^([A-Z]+)(==|=)"([^"]*)"$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			matches, set := true, map[string]string{}
			for part := range strings.SplitSeq(line, ", ") {
				m := assignment.FindStringSubmatch(part)
				if m == nil {
					t.Fatalf("%s: %q: not a rule that this test can read", file, part)
				}
				switch {
				case m[2] == "=":
					set[m[1]] = m[3]
				case m[1] == "SUBSYSTEM":
					matches = matches && m[3] == subsystem
				case m[1] == "KERNEL":
					matches = matches && slices.ContainsFunc(strings.Split(m[3], "|"), func(pattern string) bool {
						ok, err := filepath.Match(pattern, name)
						return ok && err == nil
					})
				default:
					t.Fatalf("%s: a match on %s, which this test does not know", file, m[1])
				}
			}
			if matches {
				group, mode = set["GROUP"], set["MODE"]
			}
		}
	}
	return group, mode
}

// TestPackagesShareDevices: whichever of the two packages is on a host, and whichever
// rules come last, units get the devices that they need, by groups that the package
// makes.
func TestPackagesShareDevices(t *testing.T) {
	t.Parallel()
	const service, agent = "udev/60-portcullisd.rules", "udev/60-portcullis-agent.rules"
	for _, files := range [][]string{{service}, {agent}, {service, agent}, {agent, service}} {
		for _, need := range []struct{ rules, device, unit, accounts string }{
			{service, "umad0", "portcullisd.service", "systemd/sysusers/portcullisd.conf"},
			{service, "issm1", "portcullisd.service", "systemd/sysusers/portcullisd.conf"},
			{agent, "umad12", "portcullis-agent.service", "systemd/sysusers/portcullis-agent.conf"},
			{agent, "umad12", doctor, "systemd/sysusers/portcullis-agent.conf"},
		} {
			if !slices.Contains(files, need.rules) {
				continue
			}
			group, mode := owner(t, "infiniband_mad", need.device, files...)
			if mode != "0660" || !slices.Contains(groups(t, need.unit), group) {
				t.Errorf("rules %v: %s is of group %q, mode %q, and %s is in %v", files, need.device, group, mode, need.unit, groups(t, need.unit))
			}
			accounts, err := os.ReadFile(need.accounts)
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile(`(?m)^[gu] ` + regexp.QuoteMeta(group) + ` `).Match(accounts) {
				t.Errorf("%s does not make the group %s", need.accounts, group)
			}
		}
	}
	for _, file := range []string{"systemd/sysusers/portcullisd.conf", "systemd/sysusers/portcullis-agent.conf"} {
		accounts, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^m \S+ portcullis-umad`).Match(accounts) {
			t.Errorf("%s puts an account into the group portcullis-umad: units alone are in it", file)
		}
	}
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}
