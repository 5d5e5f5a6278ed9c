package sim

import "portcullis/fabricsm/ib"

// SetPortGUID sets another GUID of an end port of an adapter, and does not change that of the node. It is visible in
// NodeInfo and GUIDInfo; no trap reports it.
func (f *Fabric) SetPortGUID(node string, num ib.PortNum, guid ib.GUID) error {
	return f.change("set port GUID", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		p.guid = guid
		p.encodeNodeInfo()
		p.guids.setPort(p.guid)
		return nil
	})
}
