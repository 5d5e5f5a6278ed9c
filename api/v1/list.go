package v1

// List is the answer of every route that lists. Items are sorted by their
// name and never null.
type List[T any] struct {
	Items []T `json:"items" nullable:"false"`
}

// InventoryUpload carries inventory and cabling files as they are. They are
// taken together: all or nothing.
type InventoryUpload struct {
	Files []InventoryFile `json:"files" minItems:"1" maxItems:"256" nullable:"false"`
	RepairTicket
}

// InventoryFile is one YAML file. Name is what messages call it.
type InventoryFile struct {
	Name    string `json:"name" minLength:"1" maxLength:"255"`
	Content string `json:"content" doc:"YAML text"`
}
