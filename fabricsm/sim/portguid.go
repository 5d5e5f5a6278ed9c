package sim

import "portcullis/fabricsm/ib"

// SetPortGUID gives an end port of an adapter another GUID and leaves the node's as it
// is. It shows in NodeInfo and GUIDInfo; nothing is told of it.
func (f *Fabric) SetPortGUID(node string, num ib.PortNum, guid ib.GUID) error {
	return f.change("set port GUID", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		p.guid = guid
		p.encodeNodeInfo()
		p.encodeGUID()
		return nil
	})
}
