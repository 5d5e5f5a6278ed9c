package inputs

import (
	"context"
	"log/slog"
	"sync"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
)

// ApplyTopology passes a Subnet Manager the topology of a configuration that was read again, if it differs. It returns the
// one that counts from now on. Where the Subnet Manager refuses the new one, that is the one of before, so that the next
// attachment begins with the last good one, and the next reload tries again.
func ApplyTopology(ctx context.Context, k *Operator, log *slog.Logger, was, now *sm.TopologyConfig) sm.TopologyConfig {
	same := was.Spec == nil && now.Spec == nil || was.Spec != nil && now.Spec != nil && was.Spec.Digest() == now.Spec.Digest()
	if same && was.Mode == now.Mode {
		return *now
	}
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	k.Told.forget()
	// The second and third input are taken when the first was decided.
	for _, in := range []sm.Input{&sm.TopologySet{Spec: now.Spec, Mode: now.Mode, By: "configuration"}, &sm.Woken{}, &sm.Woken{}} {
		if err := k.Pass(ctx, in); err != nil {
			log.Warn("the subnet manager takes the declared topology when it attaches", "reason", err)
			return *now
		}
	}
	if why := k.Told.refusal(); why != "" {
		log.Error("reload: the declared topology is refused; the one that was in force stays in force", "reason", why)
		return *was
	}
	return *now
}

// topologySaid is what the subnet manager said last of a declared topology that it was
// given.
type topologySaid struct {
	mu      sync.Mutex
	refused string
	inForce bool
}

func (t *topologySaid) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused, t.inForce = "", false
}

// OnEvent takes an event of the subnet manager. It does not block.
func (t *topologySaid) OnEvent(e sm.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case *declared.TopologyInForce:
		t.inForce = true
	case *declared.TopologyRefused:
		t.refused = e.Reason
	}
}

// refusal says why a topology was refused, "" if it was not. One that is in force in a
// milder mode than was asked for, until its guards allow more, is not refused.
func (t *topologySaid) refusal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inForce {
		return ""
	}
	return t.refused
}
