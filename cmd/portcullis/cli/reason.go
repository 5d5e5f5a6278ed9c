package cli

import v1 "portcullis/api/v1"

// reason is the option --reason of all commands. It implements pflag.Value.
type reason struct {
	text  string
	given bool // also as an empty text, for example of a variable of a script that is not set
}

// Set implements pflag.Value. What is wrong with the text is said when the service is asked: a command that asks none does not use it.
func (r *reason) Set(text string) error {
	*r = reason{text, true}
	return nil
}

// String implements pflag.Value.
func (r *reason) String() string { return r.text }

// Type implements pflag.Value.
func (*reason) Type() string { return "string" }

// check refuses a text that is no reason.
func (r *reason) check() error {
	if !r.given {
		return nil
	}
	if _, err := v1.CheckReason(r.text); err != nil {
		return &UsageError{Msg: "--reason: " + err.Error(), Hint: "say why in one line of at most 256 characters that can be printed"}
	}
	return nil
}
