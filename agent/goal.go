package agent

// Goal is how far a run goes.
type Goal uint8

// Goals.
const (
	// Admitted: the host is attested, its adapters are locked as the service orders,
	// it is handed over, and admitted.
	Admitted Goal = iota
	// Attested: the service accepts the evidence as the host is. Nothing is locked
	// and the host is not handed over.
	Attested
	// Locked: the adapters are locked as the service orders, and evidence shows it.
	Locked
	// Opened: adapters that leave by decision of the service are open.
	Opened
	// HandedOver: as Admitted, without waiting for the fabric.
	HandedOver
)

// String is the command of portcullis-agent that goes so far.
func (g Goal) String() string {
	return [...]string{Admitted: "provision", Attested: "evidence", Locked: "lock", Opened: "unlock", HandedOver: "handover"}[g]
}

// locks reports whether adapters are locked, or opened, on the way.
func (g Goal) locks() bool { return g != Attested }

// handsOver reports whether the host is handed over on the way.
func (g Goal) handsOver() bool { return g == Admitted || g == HandedOver }
