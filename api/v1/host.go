package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Phase is where a host stands on its way into a partition and out again.
type Phase string

// Phases, in the order of a host's life.
const (
	PhaseQuarantined Phase = "quarantined" // in inventory, admitted to nothing
	PhaseAwaiting    Phase = "awaiting"    // assigned, provisioning window open, no evidence yet
	PhaseVerified    Phase = "verified"    // evidence accepted, guards not all met
	PhaseGranting    Phase = "granting"    // grant recorded, fabric not yet read back
	PhaseAdmitted    Phase = "admitted"    // every table of the ports that are seen in their place was read back with the cluster's P_Key
	PhaseReleasing   Phase = "releasing"   // grant withdrawn, absence not yet read back
)

// HostState is a state of the life of a host, which docs/understand/life-cycle.md describes.
type HostState string

// Host is one host: what inventory declares and where it stands.
type Host struct {
	ID      string            `json:"id"`
	EK      string            `json:"ek,omitempty"` // SHA-256 of the EK's SubjectPublicKeyInfo, hex
	Class   string            `json:"class" doc:"of hosts that boot alike: whose reference values its measured boot must have"`
	HCAs    []HCA             `json:"hcas"`
	Rack    string            `json:"rack,omitempty" doc:"as inventory has it"`
	Cluster string            `json:"cluster,omitempty"` // wanted cluster, empty when unassigned
	Tenant  string            `json:"tenant,omitempty"`
	Set     string            `json:"set,omitempty" doc:"set that it was assigned for, by portcullis apply; absent: none"`
	Labels  map[string]string `json:"labels,omitempty" doc:"values by key; they grant nothing, and are not shown to tenants"`
	Epoch   int64             `json:"epoch" doc:"number of the last assignment, and the ETag of the host; 0: never assigned. A command that names it in If-Match is refused when another assignment came since"`
	Status  HostStatus        `json:"status"`
}

// HCA is one adapter of a host as inventory declares it.
type HCA struct {
	NodeGUID        ib.GUID   `json:"node_guid"`
	SystemImageGUID ib.GUID   `json:"system_image_guid,omitzero"`
	Ports           []HCAPort `json:"ports"`
}

// HCAPort is one port: its GUID, where it is cabled, where the fabric sees it.
type HCAPort struct {
	Num    ib.PortNum `json:"port"`
	GUID   ib.GUID    `json:"guid"`
	Cabled ib.Place   `json:"cabled"`          // declared by the cabling file
	Seen   ib.Place   `json:"seen,omitzero"`   // observed by the SM; empty: not seen
	PKeys  []ib.PKey  `json:"p_keys,omitzero"` // tenant P_Keys last read back from both the switch port and the HCA
}

// HostStatus is where a host stands and, when not admitted, why not.
type HostStatus struct {
	Phase      Phase      `json:"phase"`
	State      HostState  `json:"state,omitempty" doc:"where the host is in its life, finer than phase (life-cycle.md); absent where the store is away"`
	PKey       ib.PKey    `json:"p_key,omitzero"` // granted partition
	Guards     []Guard    `json:"guards"`         // every condition of admission, in order
	Since      time.Time  `json:"since"`
	Window     time.Time  `json:"window,omitzero"`   // provisioning window closes
	Attested   time.Time  `json:"attested,omitzero"` // last accepted evidence
	Sealed     time.Time  `json:"sealed,omitzero"`   // handed over after that evidence: it attests nothing more in this boot
	Reference  string     `json:"reference,omitempty" doc:"set of reference values that its measured boot has, or the waiver that counted"`
	Waived     []string   `json:"waived,omitempty" doc:"what was not demanded of the accepted evidence"`
	Outdated   []Outdated `json:"outdated,omitempty" doc:"why the accepted evidence no longer meets policy"`
	LastDenial *Denial    `json:"last_denial,omitempty"` // until what came after it was accepted
	Conflicts  []Conflict `json:"conflicts,omitempty" doc:"GUIDs that another host claims too: the host is held until they are resolved"`
}

// Outdated is why evidence that was accepted no longer meets policy.
type Outdated struct {
	Cause     string    `json:"cause" enum:"ek,ek-ca,tpm-firmware,reference,firmware,adapter,image,lock-profile"`
	Detail    string    `json:"detail"`
	Since     time.Time `json:"since"`
	Withdraws bool      `json:"withdraws" doc:"false: the host was admitted before, and stays so; it must show fresh evidence at its next provisioning"`
}

// Conflict is a GUID that another host claims too.
type Conflict struct {
	Time time.Time `json:"time"`
	GUID ib.GUID   `json:"guid"`
	With string    `json:"with"` // the other host
}

// Guard is one condition of admission.
type Guard struct {
	Name   string `json:"name"` // GuardAssigned and so on
	Met    bool   `json:"met"`
	Detail string `json:"detail,omitempty"` // why not, and what to do
}

// Names of guards, in the order in which they are checked. GuardReview is there only while a restored state is in review,
// and GuardClock only while the clock is not believed.
const (
	GuardAssigned   = "assigned"
	GuardAttested   = "attested"
	GuardSealed     = "sealed"
	GuardCabled     = "cabled"
	GuardSeen       = "seen"
	GuardCapacity   = "capacity"
	GuardReview     = "review"
	GuardClock      = "clock"
	GuardProgrammed = "programmed"
)

// GuardRecorded is the name of a guard that a machine's socket shows of a host which it
// took off its cluster while the store was away: it is met when the store has it.
const GuardRecorded = "recorded"

// Fence asks that a host be taken off the fabric.
type Fence struct {
	Reason string `json:"reason" minLength:"1" maxLength:"120" doc:"why, for those who find its ports closed"`
}

// Denial is the last refusal of evidence.
type Denial struct {
	Time   time.Time `json:"time"`
	Code   string    `json:"code"` // reason code of package attest or admission
	Detail string    `json:"detail"`
}

// Assignment asks that a host join a cluster. It opens a provisioning window.
type Assignment struct {
	Cluster string `json:"cluster" minLength:"1" maxLength:"127"`
	Window  int    `json:"window_seconds,omitempty" minimum:"60" maximum:"86400" doc:"how long the host may provision; 3600 when absent"`

	// PKey guards against a cluster that was deleted and created again meanwhile.
	PKey *ib.PKey `json:"p_key,omitempty" doc:"the P_Key of the cluster as the caller knows it: the host is not assigned if it has another one by now"`

	Set string `json:"set,omitempty" pattern:"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" doc:"set that the assignment is made for; one that is there keeps its own"`
}
