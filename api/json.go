package api

import (
	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/strictjson"
)

// maxValues bounds the values of a request body, nested ones included. The
// largest shape of the API, an inventory upload, has some 200. Without it a
// body of a million zeros costs a stranger nothing and the service, which
// explains what is wrong with each, a second and 600 MB.
const maxValues = 4096

// maxPlanValues bounds those of a plan: forty thousand hosts and forty thousand uses, in as many clusters as there may be. To
// explain what is wrong with each takes a third of a second, and only those who may look at hosts may send one.
const maxPlanValues = 1 << 18

// strictJSON is huma's JSON format with a decoder that refuses what two
// readers could understand differently: doubled keys, keys in another case,
// trailing values, byte strings in another form of base64.
// Keys of labels are data, and may have any letters.
// Unknown keys are refused later, by the schema.
func strictJSON() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalStrict}
}

func unmarshalStrict(data []byte, v any) error {
	return strictjson.Unmarshal(data, v, maxValues, "labels")
}

// manyValues is an API whose requests may have more values than maxValues.
type manyValues struct {
	huma.API
	most int
}

// Unmarshal implements huma.API. Middleware has seen to it that a body is JSON.
func (m manyValues) Unmarshal(_ string, data []byte, v any) error {
	return strictjson.Unmarshal(data, v, m.most, "labels")
}
