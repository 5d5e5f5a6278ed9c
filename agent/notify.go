package agent

// Notifier tells the service manager about the run, one sd_notify assignment
// such as "READY=1" a call.
type Notifier interface {
	Notify(state string)
}

type silent struct{}

func (silent) Notify(string) {}

// say tells people and the service manager what is being done.
func (r *run) say(what string) {
	r.log.Info(what)
	r.notify.Notify("STATUS=" + what)
}

// ready tells the service manager that the TPM answered and the adapters were
// read: from here on the agent waits for the service.
func (r *run) ready() { r.notify.Notify("READY=1") }
