package trust

import "fmt"

// Verdict is the decision about a request: it is accepted, or the reason why it is dropped. Its text appears in logs,
// metrics and the API.
type Verdict uint8

// Verdicts. All but OK are violations, and all but Refused are dropped without a word.
const (
	OK                   Verdict = iota
	BadHeader                    // no request of class 0x03 version 2
	UnknownSource                // no port has the source LID
	Flood                        // more than the limiter lets through: notice 1302
	TooOften                     // more than Options.Threshold: notice 1302
	WrongKey                     // an SA_Key that is none of ours: notice 1300
	RetiredKey                   // an SA_Key that was ours, and whose grace is over: notice 1300
	KeyElsewhere                 // the SA_Key, shown by a port that may not use it
	SpoofedSGID                  // a source GID that is not the port's: notice 1301
	NotAllowed                   // not in the table of the enhanced trust model
	SecurityTraps                // an untrusted subscription to traps 256 to 259
	AliasRefused                 // GUIDInfoRecord, which options do not allow
	Proxy                        // untrusted, on behalf of another port
	Sibling                      // on behalf of another alias of its port
	TooManyGroups                // notice 1303
	TooManyServices              // notice 1304
	TooManySubscriptions         // notice 1305
	WrongServiceKey              // a mapped ServiceName without its ServiceKey
	ReservedName                 // an untrusted registration of a name that is reserved
	Refused                      // answered with a refusal: of a group, a service
	numVerdicts
)

// NumVerdicts is how many there are.
const NumVerdicts = int(numVerdicts)

var verdictNames = [numVerdicts]string{
	OK: "ok", BadHeader: "bad-header", UnknownSource: "unknown-source", Flood: "flood", TooOften: "too-often", WrongKey: "wrong-key",
	RetiredKey: "retired-key", KeyElsewhere: "key-elsewhere", SpoofedSGID: "spoofed-sgid", NotAllowed: "not-allowed",
	SecurityTraps: "security-traps", AliasRefused: "alias-refused", Proxy: "proxy", Sibling: "sibling",
	TooManyGroups: "too-many-groups", TooManyServices: "too-many-services", TooManySubscriptions: "too-many-subscriptions",
	WrongServiceKey: "wrong-service-key", ReservedName: "reserved-name",
	Refused: "refused",
}

// String returns the name, for example "wrong-key".
func (v Verdict) String() string {
	if v < numVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// Notice returns the number of the vendor notice that reports a violation, or 0 if there is none.
func (v Verdict) Notice() uint16 {
	switch v {
	case WrongKey, RetiredKey:
		return 1300
	case SpoofedSGID:
		return 1301
	case Flood, TooOften:
		return 1302
	case TooManyGroups:
		return 1303
	case TooManyServices:
		return 1304
	case TooManySubscriptions:
		return 1305
	default:
		return 0
	}
}
