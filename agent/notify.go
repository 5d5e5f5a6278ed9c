package agent

import (
	"fmt"
	"time"
)

// Notifier notifies the service manager about the run, with one sd_notify assignment such as "READY=1" in a call.
type Notifier interface {
	Notify(state string)
}

type silent struct{}

func (silent) Notify(string) {}

// say reports the current step to people, with the time since the run began, and to the service manager.
func (r *run) say(what string) {
	r.log.Info(what, "after", r.elapsed())
	r.notify.Notify("STATUS=" + what)
}

// elapsed returns the time since the run began.
func (r *run) elapsed() time.Duration { return r.now().Sub(r.began).Round(time.Millisecond) }

// endTime is how long a run may take to end once its time is over: a command that
// the TPM or an adapter is busy with is not taken back.
const endTime = time.Minute

// starting reports to the service manager how long the run may take until it is ready: it reads adapters one by one, and
// waits for a TPM that is busy. The unit's own limit is for a program that fails before this report.
func (r *run) starting() {
	r.notify.Notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (r.config.Timeout + endTime).Microseconds()))
}

// ready reports to the service manager that the TPM answered and the adapters were read. After this point the agent waits
// for the service.
func (r *run) ready() { r.notify.Notify("READY=1") }
