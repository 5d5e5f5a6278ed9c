package v1

// MaxBatch is how many hosts one batch may name. The answer to that many is still kept for an Idempotency-Key.
const MaxBatch = 256

// CodeConfirm is the code of a batch whose number of hosts was not confirmed.
const CodeConfirm = "confirm_number"

// AssignBatch assigns several hosts to one cluster.
type AssignBatch struct {
	Assignment
	Hosts []BatchHost `json:"hosts" minItems:"1" maxItems:"256" nullable:"false" doc:"each host once"`
}

// BatchHost is a host of a batch.
type BatchHost struct {
	ID    string `json:"id" minLength:"1" maxLength:"128" doc:"host id as in inventory"`
	Epoch *int64 `json:"epoch,omitempty" minimum:"0" doc:"number of its last assignment as the caller knows it; the host is refused if it has another one by now; absent: any"`
}

// ReleaseBatch releases several hosts, each from the assignment that the caller knows.
type ReleaseBatch struct {
	Hosts []ReleasedHost `json:"hosts" minItems:"1" maxItems:"256" nullable:"false" doc:"each host once"`

	// Confirm is the guard against a list that is longer than its author thought.
	Confirm int `json:"confirm,omitempty" minimum:"0" doc:"how many hosts are meant; another number is refused with 409, and the refusal says what the release would take away"`
}

// ReleasedHost is a host of a ReleaseBatch.
type ReleasedHost struct {
	ID    string `json:"id" minLength:"1" maxLength:"128" doc:"host id as in inventory"`
	Epoch int64  `json:"epoch" minimum:"0" doc:"number of the assignment that is to end"`
}

// Batch is what became of the hosts of a batch. Each host was handled by itself.
type Batch struct {
	Changed []BatchedHost `json:"changed" nullable:"false" doc:"hosts that were changed, in the order of the request"`
	Refused []RefusedHost `json:"refused" nullable:"false" doc:"hosts of which nothing was changed, in the order of the request, and why"`
}

// BatchedHost is a host that was changed.
type BatchedHost struct {
	ID    string `json:"id"`
	Epoch int64  `json:"epoch" doc:"number of its last assignment"`
}

// RefusedHost is a host that was not changed.
type RefusedHost struct {
	ID     string `json:"id"`
	Status int    `json:"status" doc:"HTTP status that a request about the host alone is answered with"`
	Code   string `json:"code" doc:"as in a problem"`
	Detail string `json:"detail" doc:"what was refused and why"`
	Hint   string `json:"hint,omitempty" doc:"what to do"`
}
