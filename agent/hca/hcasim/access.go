package hcasim

import (
	"errors"

	"portcullis/agent/hca/register"
)

// ErrNoAnswer means that the driver abandoned a command.
var ErrNoAnswer = errors.New("the driver stopped waiting")

// Register reads or writes a register as the agent does through the kernel, for a caller that drives a card without a
// socket. A refusal by the firmware is a *register.Error.
func (c *Card) Register(id register.ID, m register.Method, data []byte) ([]byte, error) {
	a := register.Access{ID: id, Method: m, Data: data}
	reply, err := c.RPC(register.RPC{Scope: register.DebugReadOnly, In: a.Encode(), Room: register.HeaderSize + len(data)})
	switch {
	case err != nil:
		return nil, err
	case reply.Errno != 0:
		return nil, ErrNoAnswer
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		return nil, err
	}
	if answer.Status != register.OK {
		return nil, &register.Error{What: id.String(), Status: answer.Status, Syndrome: answer.Syndrome}
	}
	return answer.Data, nil
}
