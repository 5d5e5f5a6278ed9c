package api

import (
	"context"

	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Backend is what the routes need of hosts, by consumer. All of it is required.
//
// Methods answer *refusal.Error for what the caller can understand and *attest.Refusal for evidence that was not accepted;
// any other error is a fault of the service. An actor is the name of the credential that asked, for the audit log. Lists
// are a page at a time, in the order of their items' names; a cursor that is none is an error that is page.ErrCursor.
type Backend struct {
	Attestation Attestation
	Inventory   Inventory
	Layout      Layout
	Lifecycle   Lifecycle
	Brakes      BrakeKeeper
	Reviews     Reviewer
	State       FabricState
	Labels      Labels
}

// Attestation verifies what hosts say. Package attestation implements it.
type Attestation interface {
	// OpenSession starts an attestation for the host named in req. source
	// is the caller's address, for limits and audit.
	OpenSession(ctx context.Context, req *attest.SessionRequest, source string) (*attest.Session, error)
	// AwaitsEvidence refuses a session that waits for no evidence, as SubmitEvidence
	// would, and AwaitsSeal one that waits for no seal.
	AwaitsEvidence(ctx context.Context, session string) error
	AwaitsSeal(ctx context.Context, session string) error
	// SubmitEvidence consumes the session once the proof in the evidence is right,
	// whatever the outcome. channel is the TLS exporter value of the connection the evidence came over, nil
	// when channel binding is off.
	SubmitEvidence(ctx context.Context, session string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error)
	// SubmitSeal consumes the session's second challenge if the host's TPM signed the answer,
	// whatever the outcome. source is the caller's address.
	SubmitSeal(ctx context.Context, session string, channel []byte, source string, ev *attest.SealEvidence) (*v1.SealResult, error)
	// RenewSeal returns the second challenge of a session again to the host that holds token.
	RenewSeal(ctx context.Context, token, session string) (*attest.Seal, error)
	// HostStatusByToken answers the host that was given token.
	HostStatusByToken(ctx context.Context, token string) (*v1.Host, error)
	// HostStatusByCertificate answers a host that showed this certificate (DER) of its
	// own, which was verified, if the host holds it still.
	HostStatusByCertificate(ctx context.Context, host string, der []byte) (*v1.Host, error)
	// AttestationResult returns a signed token about where the host stands now, which answers nonce, unless that is nil.
	AttestationResult(ctx context.Context, id string, nonce []byte) (*v1.AttestationResult, error)
	// AcknowledgeClear says that an operator knows why the host's TPM was cleared.
	AcknowledgeClear(ctx context.Context, actor, host string, a v1.TPMCleared) (*v1.Host, error)
}

// Inventory keeps which hosts there are, and the EK of each. Package inventory/register implements it.
type Inventory interface {
	// ImportInventory replaces what the files declare, all or nothing. Rows that need a
	// second person are staged under the ticket.
	ImportInventory(ctx context.Context, actor string, files []inventory.File, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error)
	// ExportInventory returns all inventory as a file that ImportInventory reads.
	ExportInventory(ctx context.Context) ([]byte, error)
	// RemoveEquipment removes what left permanently and is no host.
	RemoveEquipment(ctx context.Context, actor string, kind inventory.Kind, id string, in v1.HostRemoval) error
	Repairs(ctx context.Context, q v1.PageQuery) (*v1.List[v1.Repair], error)
	Repair(ctx context.Context, host string) (*v1.Repair, error)
	// ConfirmRepair puts a staged row into force. The actor must not be the one who staged it.
	ConfirmRepair(ctx context.Context, actor, host string, in v1.RepairConfirm) (*v1.Repair, error)
	CancelRepair(ctx context.Context, actor, host string, in v1.RepairCancel) (*v1.Repair, error)
	// DeniedEKs lists the EKs that were replaced, the newest first.
	DeniedEKs(ctx context.Context, q v1.PageQuery) (*v1.List[v1.DeniedEK], error)
}

// Layout shows what the inventory has where. Package inventory/layout implements it.
type Layout interface {
	Racks(ctx context.Context, q v1.RackQuery) (*v1.List[v1.Rack], error)
	Rack(ctx context.Context, id string) (*v1.RackView, error)
	Switches(ctx context.Context, q v1.SwitchQuery) (*v1.List[v1.Switch], error)
	// Switch returns the switch with a name or a GUID.
	Switch(ctx context.Context, id string) (*v1.SwitchView, error)
	Cables(ctx context.Context, q v1.CableQuery) (*v1.List[v1.InventoryCable], error)
	// Spares lists what is in stock.
	Spares(ctx context.Context, q v1.PageQuery) (*v1.List[v1.Spare], error)
}

// Lifecycle shows hosts, and has them be in clusters or not. Package admission implements it.
type Lifecycle interface {
	// Hosts, HostSummaries and HostIDs are one list in three views.
	Hosts(ctx context.Context, q v1.HostQuery) (*v1.List[v1.Host], error)
	HostSummaries(ctx context.Context, q v1.HostQuery) (*v1.List[v1.HostSummary], error)
	HostIDs(ctx context.Context, q v1.HostQuery) (*v1.List[v1.HostID], error)
	Host(ctx context.Context, id string) (*v1.Host, error)
	Assign(ctx context.Context, actor, host string, a v1.Assignment) (*v1.Host, error)
	Release(ctx context.Context, actor, host string) (*v1.Host, error)
	// ResolveGUID ends the conflicts of a host about GUIDs.
	ResolveGUID(ctx context.Context, actor, host string, in v1.GUIDResolved) (*v1.Host, error)
	// RemoveHost takes a host out of inventory that has nothing any longer.
	RemoveHost(ctx context.Context, actor, host string, in v1.HostRemoval) error
	// Watch sends the host now and after each change until ctx ends, then
	// closes the channel.
	Watch(ctx context.Context, host string) (<-chan *v1.Host, error)
}

// BrakeKeeper stops what automatic causes would take from many hosts. Package admission implements it.
type BrakeKeeper interface {
	// BrakeState says what automatic causes would take and is kept; ReleaseBrake has it go on.
	BrakeState(ctx context.Context) (*v1.Brakes, error)
	ReleaseBrake(ctx context.Context, actor string, in v1.BrakeRelease) (*v1.Brakes, error)
}

// Reviewer compares a restored state with the fabric. Package admission implements it.
type Reviewer interface {
	// Review compares a restored state with the fabric; Approve and Reject decide about hosts of it, and EndReview
	// ends that.
	Review(ctx context.Context) (*v1.Review, error)
	Approve(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error)
	Reject(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error)
	EndReview(ctx context.Context, actor string, in v1.ReviewEnd) (*v1.Review, error)
}

// FabricState says what the Subnet Manager last reported. Package admission implements it.
type FabricState interface {
	Fabric(ctx context.Context) (*v1.Fabric, error)
	SM(ctx context.Context) (*v1.SM, error)
	// ForgetUnseen holds the nodes that are out of sight for gone, and answers what they were.
	ForgetUnseen(ctx context.Context, actor string, a v1.SightAccept) (*v1.Sight, error)
}
