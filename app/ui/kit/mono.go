package kit

import (
	"encoding/binary"
	"sync"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// monoFont is the bundled monospaced font with more room below the letters:
// as it comes, an underscore lies on the last half pixel of a line at ordinary
// sizes and is not drawn at all, and exact text has to be exact.
var monoFont = sync.OnceValue(func() fyne.Resource {
	font := theme.DefaultTheme().Font(fyne.TextStyle{Monospace: true})
	return fyne.NewStaticResource("roomy-"+font.Name(), roomier(font.Content()))
})

// roomier returns a copy of an OpenType font whose line reaches an eighth of an
// em further down: the descender in the tables hhea and OS/2 (OpenType
// specification, "hhea", "OS/2"). What it can't read it returns as it is.
func roomier(font []byte) []byte {
	out := append([]byte(nil), font...)
	var units, lower int16
	tables := map[string][]byte{}
	if len(out) < 12 {
		return out
	}
	for i := range int(binary.BigEndian.Uint16(out[4:])) {
		at := 12 + 16*i
		if at+16 > len(out) {
			return out
		}
		off, size := binary.BigEndian.Uint32(out[at+8:]), binary.BigEndian.Uint32(out[at+12:])
		if end := uint64(off) + uint64(size); end <= uint64(len(out)) {
			tables[string(out[at:at+4])] = out[off:end]
		}
	}
	if head := tables["head"]; len(head) >= 20 {
		units = int16(binary.BigEndian.Uint16(head[18:]))
		lower = units / 8
	}
	down := func(table []byte, at int) {
		if len(table) >= at+2 {
			d := int16(binary.BigEndian.Uint16(table[at:])) - lower
			binary.BigEndian.PutUint16(table[at:], uint16(d))
		}
	}
	down(tables["hhea"], 6)
	down(tables["OS/2"], 70) // sTypoDescender
	return out
}
