package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
	"portcullis/cmd/internal/program"
)

// approver is the operator who approves the sets that the first one made.
const approver = "second"

// addApprover adds an operator to the tokens of the service, which does not run
// yet.
func (s *stage) addApprover(ctx context.Context) error {
	token, err := program.Call(ctx, s.at("portcullisd"), "token", "--name", approver, "--role", "operator")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.path("etc", "tokens.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "- {name: %s, role: operator, sha256: %x}\n", approver, sha256.Sum256([]byte(strings.TrimSpace(string(token)))))
	return errors.Join(err, f.Close(), os.WriteFile(s.approverFile(), token, 0o600))
}

func (s *stage) approverFile() string { return s.path("etc", approver+".token") }

// machine is what host number i boots: all are of one model, and each has a
// network card of its own.
func machine(i int) *eventlogtest.Machine {
	m := eventlogtest.Example()
	m.MAC = fmt.Sprintf("00:00:5e:00:53:%02x", i+1)
	return &m
}

// trustBoots has reference values learned of two hosts, which are refused
// without, and approved by another operator.
func (t *story) trustBoots(ctx context.Context, golden ...host) error {
	args := []string{"reference", "learn", reference.DefaultClass, "--reason", "as delivered"}
	var names []string
	for _, h := range golden {
		if err := t.refusedFor(ctx, h, h, attest.ReasonReference); err != nil {
			return err
		}
		args, names = append(args, "--host", h.id), append(names, h.id)
	}
	t.say("%s attest, and are refused: no measured boot is trusted yet", strings.Join(names, " and "))
	var set v1.Reference
	if err := t.ask(ctx, &set, args...); err != nil {
		return err
	}
	approve := []string{"reference", "approve", set.Name}
	if _, err := t.cli(ctx, approve...); err == nil {
		return fmt.Errorf("who learned reference values %s could approve them", set.Name)
	}
	if _, err := t.cliAs(ctx, t.approverFile(), approve...); err != nil {
		return err
	}
	t.say("their boots become reference values %s: learned by one operator, approved by another; the network card's address may differ", set.Name)
	return nil
}

// refusedFor runs the agent of a host, which must be refused for one reason.
func (t *story) refusedFor(ctx context.Context, h, shown host, want attest.Reason) error {
	_, err := t.agent(ctx, h, shown)
	refused, ok := errors.AsType[*program.StatusError](err)
	if !ok {
		return fmt.Errorf("%s attested: want a refusal for %s, got %w", h.id, want, orNil(err))
	}
	var seen v1.Host
	if err := t.ask(ctx, &seen, "host", "show", h.id); err != nil {
		return err
	}
	if d := seen.Status.LastDenial; d == nil || d.Code != string(want) {
		return fmt.Errorf("%s was turned away (%v), want a refusal on record for %s, got %+v", h.id, refused, want, d)
	}
	return nil
}
