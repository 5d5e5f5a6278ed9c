package verdict

import (
	"fmt"
	"strconv"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/opensmconf"
)

// Judgement is what becomes of one setting.
type Judgement struct {
	Class Class
	Key   string // of portcullisd.yaml; empty: none is concerned
	To    string // value to be written there, as YAML; empty: none is written
	Text  string
	// Loses says that something of traffic, access or supervision is not as before.
	Loses bool
}

// Judge returns what becomes of an option with a value, without regard to other options. A text never shows the value of a
// secret option.
func (o *Option) Judge(value string) Judgement {
	if o.isTruth() {
		if v, plain := opensmconf.Truth(value); !plain && !opensmconf.IsNull(value) {
			j := o.judge(truth(v))
			j.Text = join("OpenSM takes anything but TRUE for FALSE, so FALSE was in force; check what was meant", j.Text)
			if j.Class == NotNeeded || j.Class == Taken {
				j.Class = Changed
			}
			return j
		}
	}
	return o.judge(value)
}

func (o *Option) judge(value string) Judgement {
	j := Judgement{Class: o.Class, Key: o.Key, Text: o.Text, Loses: o.loses()}
	if o.IsUsual(value) || opensmconf.IsNull(value) {
		return o.usual(j)
	}
	if o.Form == None || o.Form == File || o.Form == Planned {
		return j
	}
	to, err := o.convert(value)
	if err != nil {
		return Judgement{Class: Unknown, Key: o.Key, Text: err.Error(), Loses: true}
	}
	j.To = to
	return j
}

// usual returns the judgement of OpenSM's default.
func (o *Option) usual(j Judgement) Judgement {
	j.Loses = false
	switch {
	case o.Class == Unsupported || o.Class == Unsafe:
		return Judgement{Class: NotNeeded, Key: o.Key, Text: "it is at OpenSM's default, which asks for nothing"}
	case o.Here != "":
		j.Class, j.Text = Changed, "it is at OpenSM's default; here "+o.Here
	case o.Class == Taken:
		j.Text = "OpenSM's default is the default here"
	case o.Class == Changed:
		j = Judgement{Class: NotNeeded, Key: o.Key, Text: join("it is at OpenSM's default", o.Text)}
	}
	return j
}

func (o *Option) loses() bool {
	return (o.Class == Unsupported || o.Class == Unsafe) && !o.Harmless
}

// isTruth reports whether an option is TRUE or FALSE.
func (o *Option) isTruth() bool {
	return o.Usual == "TRUE" || o.Usual == "FALSE" || o.Form == Flag || o.Form == Inverse || o.Form == Eighteen
}

// convert returns a value as YAML.
func (o *Option) convert(value string) (string, error) {
	switch o.Form {
	case Flag, Inverse:
		v, _ := opensmconf.Truth(value)
		return strconv.FormatBool(v != (o.Form == Inverse)), nil
	case Eighteen:
		return "18", nil
	case Address:
		n, err := opensmconf.Number(value, 64)
		return fmt.Sprintf(`"0x%016x"`, n), err
	default:
	}
	n, err := opensmconf.Number(value, 32)
	if err != nil {
		return "", err
	}
	return o.number(int64(n))
}

func (o *Option) number(n int64) (string, error) {
	switch o.Form {
	case Lanes:
		if n >= 1 && n <= 5 {
			return strconv.Itoa(ib.VLCap(n).Count()), nil
		}
		return "", fmt.Errorf("code %d of a number of virtual lanes: want 1 to 5", n)
	case MTU:
		if n >= 1 && n <= 5 {
			return strconv.Itoa(ib.MTU(n).Bytes()), nil
		}
		return "", fmt.Errorf("code %d of an MTU: want 1 to 5", n)
	case Enable:
		if n <= 2 {
			return [...]string{"ignore", "disable", "enable"}[n], nil
		}
		return "", fmt.Errorf("%d: want 0, 1 or 2", n)
	default:
	}
	if n < o.Least || n > o.Most {
		return "", fmt.Errorf("%d: %s takes %d to %d; set it by hand", n, o.Key, o.Least, o.Most)
	}
	unit := map[Form]string{Seconds: "s", Millis: "ms", Minutes: "m"}[o.Form]
	return strconv.FormatInt(n, 10) + unit, nil
}

func truth(v bool) string {
	if v {
		return "TRUE"
	}
	return "FALSE"
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}
