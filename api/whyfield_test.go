package api

import (
	"errors"
	"strings"
	"testing"

	"portcullis/api/problem"
	"portcullis/api/reason"
	"portcullis/api/rules"
	v1 "portcullis/api/v1"
)

// TestReasonOfBodies: a body that is left out, and one whose reason is shorter than that of the header may be.
func TestReasonOfBodies(t *testing.T) {
	t.Parallel()
	s := &Server{wantsReason: []string{rules.Change}}
	confirm := &operation{id: "confirm-rma", reason: reasonFieldOf[rmaConfirmInput]()}
	mark := &operation{id: "mark-health", reason: reasonFieldOf[markInput]()}
	if confirm.reason == nil || mark.reason == nil || reasonFieldOf[assignInput]() != nil || reasonFieldOf[struct{}]() != nil {
		t.Fatal("the reason of a body is not found, or one that is not there")
	}
	ctx := reason.With(t.Context(), "seen in the rack")
	left := &rmaConfirmInput{}
	if _, err := explain(ctx, s, confirm, left); err != nil || left.Body == nil || left.Body.Reason != "seen in the rack" {
		t.Errorf("a body that is left out: %+v, %v", left.Body, err)
	}
	if _, err := explain(t.Context(), s, confirm, &rmaConfirmInput{}); err == nil || !strings.Contains(err.Error(), "api.require_reason") {
		t.Errorf("no reason at all: %v", err)
	}
	given := &rmaConfirmInput{Body: &v1.RMAConfirm{Reason: "\r\nagreed\n"}}
	if ctx, err := explain(t.Context(), s, confirm, given); err != nil || reason.Of(ctx) != "agreed" || given.Body.Reason != "agreed" {
		t.Errorf("the reason of the body is %q, and recorded as %q, %v", given.Body.Reason, reason.Of(ctx), err)
	}
	for n, want := range map[int]bool{200: true, 201: false} {
		in := &markInput{}
		_, err := explain(reason.With(t.Context(), strings.Repeat("é", n)), s, mark, in)
		if _, refused := errors.AsType[*problem.Problem](err); refused == want || want != (in.Body.Reason != "") {
			t.Errorf("%d characters: %q, %v", n, in.Body.Reason, err)
		}
	}
}
