package register

import "fmt"

// ID numbers a register.
type ID uint16

// Registers, by their names in the vendor's manual.
const (
	IDMLOCK ID = 0x402D // secure host
	IDMGIR  ID = 0x9020 // general information
	IDMNVDA ID = 0x9024 // read and write a setting
	IDMNVDI ID = 0x9025 // take a setting back
	IDMFRL  ID = 0x9028 // reset
	IDMNVQC ID = 0x9030 // is a setting supported
	IDMNVIA ID = 0x9033 // take all settings back
	IDMNVGC ID = 0x9034 // what settings can be done to
	IDMNVGN ID = 0x9035 // next setting
	IDMCQS  ID = 0x9060 // component status
	IDMCQI  ID = 0x9061 // component information
	IDMCC   ID = 0x9062 // component control
	IDMCDA  ID = 0x9063 // component data
	IDMQIS  ID = 0x9064 // strings
	IDMTCQ  ID = 0x9065 // challenge for a token
	IDMCAM  ID = 0x907F // which registers there are
	IDMDSR  ID = 0x9110 // token sessions
	IDMFSV  ID = 0x9115 // security versions
)

// Names are those of all registers that this package knows.
var names = map[ID]string{
	IDMLOCK: "MLOCK", IDMGIR: "MGIR", IDMNVDA: "MNVDA", IDMNVDI: "MNVDI", IDMFRL: "MFRL", IDMNVQC: "MNVQC",
	IDMNVIA: "MNVIA", IDMNVGC: "MNVGC", IDMNVGN: "MNVGN", IDMCQS: "MCQS", IDMCQI: "MCQI", IDMCC: "MCC",
	IDMCDA: "MCDA", IDMQIS: "MQIS", IDMTCQ: "MTCQ", IDMCAM: "MCAM", IDMDSR: "MDSR", IDMFSV: "MFSV",
}

func (i ID) String() string {
	if name, ok := names[i]; ok {
		return name
	}
	return fmt.Sprintf("register 0x%04X", uint16(i))
}

// Method says what to do with a register. The numbers are those of the
// command's op_mod.
type Method uint16

// Methods.
const (
	Write Method = 0
	Read  Method = 1
)

func (m Method) String() string {
	switch m {
	case Write:
		return "write"
	case Read:
		return "read"
	}
	return fmt.Sprintf("method %d", uint16(m))
}
