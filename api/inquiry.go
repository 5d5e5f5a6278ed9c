package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// Inquirer has diagnostic tools read devices whose keys they do not have. Errors and actors are as those of FabricOperator.
type Inquirer interface {
	// Begin returns an inquiry, which ends by itself. That it began is on record when it returns.
	Begin(ctx context.Context, actor string, n v1.NewInquiry) (*v1.Inquiry, error)
	// Ask sends requests, and returns what the tool may see of the answers. Only the actor that began an inquiry may use it.
	Ask(ctx context.Context, actor, id string, q v1.InquiryMADs) (*v1.InquiryAnswers, error)
	// End ends an inquiry.
	End(ctx context.Context, actor, id string) error
}

type (
	newInquiryInput struct{ Body v1.NewInquiry }
	inquiryMADInput struct {
		ID   string `path:"id" maxLength:"64" doc:"of the inquiry"`
		Body v1.InquiryMADs
	}
	inquiryInput struct {
		ID string `path:"id" maxLength:"64" doc:"of the inquiry"`
	}
)

func inquiryRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "begin-inquiry", method: http.MethodPost, path: "/v1/inquiries", tag: "fabric", access: accessOperate, leader: true, status: http.StatusCreated,
		summary: "Begin to have a diagnostic tool read devices through the service, for a while",
	}, func(ctx context.Context, in *newInquiryInput) (*bodyOutput[v1.Inquiry], error) {
		if s.inquirer == nil {
			return nil, unreadHere()
		}
		body, err := s.inquirer.Begin(ctx, actor(ctx), in.Body)
		return &bodyOutput[v1.Inquiry]{body}, err
	})
	register(s, a, operation{
		id: "ask-inquiry", method: http.MethodPost, path: "/v1/inquiries/{id}/mads", tag: "fabric", access: accessOperate, leader: true,
		summary: "Send requests of the tool, which only read, with the keys of the devices; the answers show no key",
	}, func(ctx context.Context, in *inquiryMADInput) (*bodyOutput[v1.InquiryAnswers], error) {
		if s.inquirer == nil {
			return nil, unreadHere()
		}
		noteOf(ctx).reads = true // a tool makes many, and the end of the inquiry says what they were
		body, err := s.inquirer.Ask(ctx, actor(ctx), in.ID, in.Body)
		return &bodyOutput[v1.InquiryAnswers]{body}, err
	})
	register(s, a, operation{
		id: "end-inquiry", method: http.MethodDelete, path: "/v1/inquiries/{id}", tag: "fabric", access: accessOperate, leader: true,
		summary: "End it before its time is over",
	}, func(ctx context.Context, in *inquiryInput) (*struct{}, error) {
		if s.inquirer == nil {
			return nil, unreadHere()
		}
		return nil, s.inquirer.End(ctx, actor(ctx), in.ID)
	})
}
