//go:build boot

package boot

import "testing"

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

func serviceStops(t *testing.T) {
	do(t, "systemctl", "stop", service)
	want(t, service, "ActiveState=inactive", "Result=success", "ExecMainStatus=0")
}
