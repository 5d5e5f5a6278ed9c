//go:build boot

package boot

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const configuration = "/etc/portcullis/portcullisd.yaml"

// serviceStarts makes a fresh installation, as a person would.
func serviceStarts(t *testing.T) {
	fails(t, service, "portcullisd init")
	do(t, "systemctl", "stop", service)
	do(t, "portcullisd", "init", "--names", "localhost")
	do(t, "systemctl", "reset-failed")
	do(t, "systemctl", "start", service) // returns once the service is ready
	want(t, service, "ActiveState=active", "SubState=running", "NRestarts=0", "User=portcullis")
	portcullis(t, "host", "list")
}

// portcullis runs the operator's program.
func portcullis(t testing.TB, args ...string) string {
	t.Helper()
	return do(t, "portcullis", append(args, "--service", "https://localhost:8443", "--ca", "/etc/portcullis/tls/ca.pem", "--token-file", "/etc/portcullis/operator.token")...)
}

// serviceCage looks at the process as the kernel has it.
func serviceCage(t *testing.T) {
	status, err := os.ReadFile("/proc/" + is(t, service)["MainPID"] + "/status")
	must(t, err)
	says(t, string(status), "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2")
	for path, mode := range map[string]os.FileMode{
		"/var/lib/portcullis": 0o700 | os.ModeDir, "/etc/portcullis/keys.root": 0o640, "/etc/portcullis/tls/ca.key": 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), mode)
		}
	}
}

func serviceReloads(t *testing.T) {
	pid := is(t, service)["MainPID"]
	do(t, "systemctl", "reload", service) // which does not wait for the program
	noted(t, service, "reloaded certificate and tokens")
	await(t, "the reload is over", func() bool { return is(t, service)["ActiveState"] == "active" })
	want(t, service, "SubState=running", "MainPID="+pid)
}

// secondService is started by hand, by somebody who did not see the first.
func secondService(t *testing.T) {
	e := try(t, "setpriv", "--reuid=portcullis", "--regid=portcullis", "--clear-groups", "portcullisd", "--config", configuration)
	if e.code == 0 {
		t.Fatal("a second service runs on the same state")
	}
	says(t, e.all, "portcullisd: ", "hint: ")
	want(t, service, "ActiveState=active")
	portcullis(t, "host", "list")
}

// again waits until the service was started another time and is ready.
func again(t *testing.T, before map[string]string) map[string]string {
	t.Helper()
	now := before
	await(t, "the service is started again", func() bool {
		now = is(t, service)
		return now["NRestarts"] != before["NRestarts"] && now["ActiveState"] == "active" && now["MainPID"] != before["MainPID"]
	})
	portcullis(t, "host", "list")
	return now
}

func serviceKilled(t *testing.T) {
	before := is(t, service)
	do(t, "systemctl", "kill", "--signal=KILL", service)
	again(t, before)
}

// serviceHangs stops the process, so that the watchdog hears nothing of it.
func serviceHangs(t *testing.T) {
	const override = "/run/systemd/system/" + service + ".d/watchdog.conf"
	put(t, override, "[Service]\nWatchdogSec=3s\n")
	do(t, "systemctl", "daemon-reload")
	do(t, "systemctl", "restart", service)
	before := is(t, service)
	do(t, "systemctl", "kill", "--signal=STOP", "--kill-whom=main", service)
	again(t, before)
	must(t, os.Remove(override))
	do(t, "systemctl", "daemon-reload")
	do(t, "systemctl", "restart", service)
}

// serviceDiskFull has the state on a disk of its own, which others fill.
func serviceDiskFull(t *testing.T) {
	const state, ballast = "/var/lib/portcullis", "/var/lib/portcullis/ballast"
	do(t, "systemctl", "stop", service)
	do(t, "mount", "-t", "tmpfs", "-o", "size=100m,mode=0700,uid=portcullis,gid=portcullis", "none", state)
	defer func() {
		do(t, "systemctl", "stop", service)
		do(t, "umount", state)
		do(t, "systemctl", "reset-failed")
		do(t, "systemctl", "start", service)
	}()
	fails(t, service, state, "free some")

	do(t, "systemctl", "stop", service)
	do(t, "systemctl", "reset-failed")
	do(t, "mount", "-o", "remount,size=400m", state)
	do(t, "systemctl", "start", service)
	before := is(t, service)
	e := try(t, "dd", "if=/dev/zero", "of="+ballast, "bs=1M")
	says(t, e.all, "No space left on device")
	for n := 0; is(t, service)["InvocationID"] == before["InvocationID"] && is(t, service)["ActiveState"] == "active"; n++ {
		try(t, "portcullis", "tenant", "create", fmt.Sprintf("filler-%d-%s", n, strings.Repeat("x", 40)),
			"--service", "https://localhost:8443", "--ca", "/etc/portcullis/tls/ca.pem", "--token-file", "/etc/portcullis/operator.token")
	}
	await(t, "the service is given up", func() bool { return is(t, service)["ActiveState"] == "failed" })
	must(t, os.Remove(ballast))
	do(t, "systemctl", "reset-failed")
	do(t, "systemctl", "start", service)
	portcullis(t, "host", "list")
}

func serviceStops(t *testing.T) {
	do(t, "systemctl", "stop", service)
	want(t, service, "ActiveState=inactive", "Result=success", "ExecMainStatus=0")
}
