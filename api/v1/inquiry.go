package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Bounds of inquiries.
const (
	MaxInquirySeconds = 60 * 60
	MaxInquiryMADs    = 64
)

// NewInquiry asks that a diagnostic tool may read devices through the service.
type NewInquiry struct {
	Reason  string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
	Tool    string `json:"tool" minLength:"1" maxLength:"256" doc:"the command, for the audit log"`
	Seconds int    `json:"seconds" minimum:"1" maximum:"3600" doc:"for so long"`
}

// Inquiry lets a diagnostic tool read devices through the service.
type Inquiry struct {
	ID    string    `json:"id"`
	GUID  ib.GUID   `json:"guid" doc:"of the port that asks: directed routes begin there"`
	Until time.Time `json:"until" doc:"when it ends"`
}

// InquiryMADs are requests of a tool. The service adds the M_Key of the device to those of subnet management.
type InquiryMADs struct {
	MADs []InquiryMAD `json:"mads" minItems:"1" maxItems:"64"`
}

// InquiryMAD is a request of a tool: a Get of subnet management or of performance management.
type InquiryMAD struct {
	LID ib.LID `json:"lid" doc:"where it is sent; of no account to a directed route"`
	MAD []byte `json:"mad" minLength:"344" maxLength:"344" doc:"256 bytes in base64"`
}

// InquiryAnswers are what a tool sees, in the order of its requests.
type InquiryAnswers struct {
	Answers []InquiryAnswer `json:"answers"`
}

// InquiryAnswer is what a tool sees of the answer to one request.
type InquiryAnswer struct {
	MAD     []byte `json:"mad,omitempty" doc:"256 bytes in base64, without any key; absent: there was no answer, or the request was refused"`
	Refused string `json:"refused,omitempty" doc:"why the request was not sent"`
}
