package api

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/strictjson"
)

// maxValues bounds the values of a request body, nested ones included. The
// largest shape of the API, an inventory upload, has some 200. Without it a
// body of a million zeros costs a stranger nothing and the service, which
// explains what is wrong with each, a second and 600 MB.
const maxValues = 4096

// strictJSON is huma's JSON format with a decoder that refuses what two
// readers could understand differently: doubled keys, keys in another case,
// trailing values, byte strings in another form of base64.
// Keys of labels are data, and may have any letters.
// Unknown keys are refused later, by the schema.
func strictJSON() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalStrict}
}

func unmarshalStrict(data []byte, v any) error {
	if err := strictjson.CheckMaps(data, maxValues, "labels"); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return strictjson.CheckBase64(data, v)
}
