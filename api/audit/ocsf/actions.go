package ocsf

import (
	"slices"
	"strconv"
	"strings"
)

// Activity is an activity_id of the class API Activity.
type Activity int

// Activities.
const (
	Create Activity = 1
	Read   Activity = 2
	Update Activity = 3
	Delete Activity = 4
	Other  Activity = 99 // of the service itself, or none of the above
)

// String returns the caption.
func (a Activity) String() string {
	return caption(map[Activity]string{Create: "Create", Read: "Read", Update: "Update", Delete: "Delete", Other: "Other"}, a)
}

// Status is a status_id.
type Status int

// Outcomes.
const (
	Undetermined Status = 0
	Success      Status = 1
	Failure      Status = 2
	Recorded     Status = 99 // an event: the service detected something, which neither succeeded nor failed
)

// String returns the caption.
func (s Status) String() string {
	return caption(map[Status]string{Undetermined: "Unknown", Success: "Success", Failure: "Failure", Recorded: "Recorded"}, s)
}

// Severity is a severity_id.
type Severity int

// Severities.
const (
	Unrated       Severity = 0
	Informational Severity = 1
	Medium        Severity = 3
	Critical      Severity = 5
)

// String returns the caption.
func (s Severity) String() string {
	return caption(map[Severity]string{Unrated: "Unknown", Informational: "Informational", Medium: "Medium", Critical: "Critical"}, s)
}

func caption[T ~int](captions map[T]string, v T) string {
	if text, known := captions[v]; known {
		return text
	}
	return strconv.Itoa(int(v))
}

// kind is what the table knows of an action.
type kind struct {
	activity Activity
	// codes says what the code of an entry means.
	codes meaning
	// failed are codes of entries by which nothing was done, where codes is states.
	failed []string
}

// meaning is what the code of an entry means.
type meaning int

const (
	states   meaning = iota // how the object is now, or "ok": it was done
	refusals                // "ok" or none: it was done; any other: it was refused, and why
	refused                 // it was refused, whatever the code
)

// actions are those of the audit log, without events.
var actions = map[string]kind{
	"adoption.confirm":         {activity: Update},
	"adoption.end":             {activity: Delete},
	"adoption.found":           {activity: Create},
	"adoption.over":            {activity: Delete},
	"adoption.propose":         {activity: Update},
	"adoption.stage":           {activity: Create},
	"audit.accept-break":       {activity: Update},
	"audit.branch":             {activity: Update},
	"backup.create":            {activity: Create},
	"backup.stream":            {activity: Read},
	"brake.release":            {activity: Update},
	"clock.set":                {activity: Update},
	"cluster.create":           {activity: Create, codes: refusals},
	"cluster.delete":           {activity: Delete, codes: refusals},
	"cluster.label":            {activity: Update, codes: refusals},
	"cluster.recover":          {activity: Update},
	"cluster.stop_use":         {activity: Update, codes: refusals},
	"cluster.use":              {activity: Update, codes: refusals},
	"evidence.accept":          {activity: Create},
	"evidence.refuse":          {activity: Create, codes: refused},
	"evidence.seal":            {activity: Update},
	"evidence.seal-nonce":      {activity: Update},
	"fabric.forget":            {activity: Delete},
	"fabric.health":            {activity: Update},
	"fabric.inquiry.begin":     {activity: Read},
	"fabric.inquiry.end":       {activity: Read},
	"fabric.keys":              {activity: Update},
	"fabric.keys.lend":         {activity: Read},
	"fabric.keys.move":         {activity: Update},
	"fabric.keys.rehearsed":    {activity: Read},
	"fabric.keys.retire":       {activity: Delete},
	"fabric.keys.sa_key":       {activity: Update},
	"fabric.keys.sealed":       {activity: Read},
	"guid.resolve":             {activity: Update},
	"host-authority.rotate":    {activity: Create},
	"host.assign":              {activity: Update, codes: refusals},
	"host.label":               {activity: Update, codes: refusals},
	"host.phase":               {activity: Update},
	"host.release":             {activity: Update, codes: refusals},
	"host.release.ordered":     {activity: Update, failed: []string{"unknown", "superseded"}},
	"host.remove":              {activity: Delete, codes: refusals},
	"host.tpm-cleared":         {activity: Update, codes: refusals},
	"inventory.import":         {activity: Update},
	"inventory.recable":        {activity: Update},
	"inventory.remove":         {activity: Delete},
	"inventory.repair.cancel":  {activity: Delete},
	"inventory.repair.confirm": {activity: Update},
	"inventory.repair.stage":   {activity: Create},
	"lock.order":               {activity: Update},
	"lock.refuse":              {activity: Update, codes: refused},
	"lock.release":             {activity: Update},
	"lock.retain":              {activity: Update},
	"lock.ticket":              {activity: Create},
	"p_key.absent":             {activity: Update},
	"receipt-keys.rotate":      {activity: Create},
	"receipt-log.begin":        {activity: Create},
	"receipt.issue":            {activity: Create},
	"reference.approve":        {activity: Update},
	"reference.expire":         {activity: Delete},
	"reference.learn":          {activity: Create},
	"reference.waive":          {activity: Create},
	"result-keys.rotate":       {activity: Create},
	"review.approve":           {activity: Update, codes: refusals},
	"review.end":               {activity: Update, codes: refusals},
	"review.reject":            {activity: Update, codes: refusals},
	"sm.step-down":             {activity: Update},
	"state.restore":            {activity: Update},
	"tenant.create":            {activity: Create, codes: refusals},
	"tenant.delete":            {activity: Delete, codes: refusals},
	"tenant.label":             {activity: Update, codes: refusals},
	"tenant.quota":             {activity: Update, codes: refusals},
	"token.refuse":             {activity: Other, codes: refused},
	"topospec.activate":        {activity: Update},
	"topospec.approve":         {activity: Update},
	"topospec.draft":           {activity: Create},
	"topospec.keep":            {activity: Update},
	"topospec.reject":          {activity: Update},
	"topospec.rma.cancel":      {activity: Delete},
	"topospec.rma.confirm":     {activity: Update},
	"topospec.rma.draft":       {activity: Update},
	"topospec.rma.recable":     {activity: Update},
	"topospec.rma.start":       {activity: Create},
	"topospec.rollback":        {activity: Update},
	"webhook.replay":           {activity: Update},
}

// eventPrefix begins the action of an event, with its type behind it.
const eventPrefix = "event."

// activityOf returns the activity of an action. Events, and actions that the table does not have, are Other.
func activityOf(action string) Activity {
	if k, known := actions[action]; known {
		return k.activity
	}
	return Other
}

// statusOf returns the outcome of an entry. That of an action which the table does not have is known only where it has no code, or "ok".
func statusOf(action, code string) Status {
	if strings.HasPrefix(action, eventPrefix) {
		return Recorded
	}
	k, known := actions[action]
	switch {
	case k.codes == refused:
		return Failure
	case code == "" || code == "ok":
		return Success
	case !known:
		return Undetermined
	case k.codes == refusals || slices.Contains(k.failed, code):
		return Failure
	default:
		return Success
	}
}

// severityOf returns the severity of an entry: of an event, that of its type; of a refusal, Medium.
func severityOf(action string, s Status) Severity {
	if kind, is := strings.CutPrefix(action, eventPrefix); is {
		return events[kind]
	}
	switch s {
	case Success:
		return Informational
	case Failure:
		return Medium
	default:
		return Unrated
	}
}
