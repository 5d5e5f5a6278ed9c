// Package alias handles requests for alias GUIDs, which virtual functions use: GUIDInfoRecord Set and Delete (IBTA volume
// 1, 15.2.5.18). Get and GetTable return the current contents of ports, see package record.
//
// A port gets a GUID if the inventory allows it and if the GUID is not in use by, or promised to, another port. The alias
// is valid only at the place where the port was at the time of the request: GUIDs do not move with a cable. Assigned
// aliases are saved, and the Subnet Manager programs them.
package alias
