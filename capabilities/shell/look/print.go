package look

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
)

// print makes the fingerprint of a look, line by line in the order of looking,
// which is the same as long as nothing changes. After 1, 2, 4, 8 … lines it
// keeps the sum so far: a look that time cut off ends with the last of them,
// and a later one that came further has it among its own.
type print struct {
	h     hash.Hash
	lines int
	marks []string
}

func newPrint() *print { return &print{h: sha256.New()} }

func (p *print) add(parts ...string) {
	for _, s := range parts {
		io.WriteString(p.h, strconv.Quote(s))
	}
	io.WriteString(p.h, "\n")
	if p.lines++; p.lines&(p.lines-1) == 0 {
		p.marks = append(p.marks, p.sum("until "+strconv.Itoa(p.lines)))
	}
}

func (p *print) sum(tag string) string {
	return tag + " " + hex.EncodeToString(p.h.Sum(nil))
}

// last is the fingerprint of a look that time cut off.
func (p *print) last() string {
	if len(p.marks) == 0 {
		return "until 0"
	}
	return p.marks[len(p.marks)-1]
}
