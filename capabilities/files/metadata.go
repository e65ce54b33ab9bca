package files

import (
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"localpc/tunnel/wire"
)

// metaPrefix begins the names of the extended attributes that hold metadata.
const metaPrefix = "user.e2b."

// setMetadata gives f the metadata m in place of what it has. A disk that keeps
// none is an error only where there is some to keep.
func setMetadata(f *os.File, m map[string]string) error {
	for name := range fileMetadata(f) {
		if _, stays := m[name]; stays {
			continue
		}
		if err := removeAttribute(f, metaPrefix+name); err != nil {
			return metadataError(err)
		}
	}
	for name, value := range m {
		if err := setAttribute(f, metaPrefix+name, value); err != nil {
			return metadataError(err)
		}
	}
	return nil
}

func metadataError(err error) error {
	switch {
	case noAttributes(err):
		return wire.Wrap(err, wire.CodeNotSupported, "The disk that this file is on keeps no metadata with its files, so nothing was written. Write it without metadata.")
	case attributesFull(err):
		return wire.Wrap(err, wire.CodeTooLarge, "The disk that this file is on has less room for metadata with a file than this takes, so nothing was written. Write it with less.")
	}
	return err
}

// told is the part of m that the wire takes: another program may have written
// such attributes, too.
func told(m map[string]string) map[string]string {
	out, total := map[string]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := m[name]
		if name == "" || len(name) > 128 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			continue
		}
		if total += len(name) + len(value); total > wire.MaxMetadata {
			break
		}
		out[name] = value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// metadataOf is the metadata of name in dir; what is neither a file nor a
// folder has none.
func metadataOf(dir *os.File, name string, n node) map[string]string {
	if !n.mode.IsRegular() && !n.mode.IsDir() {
		return nil
	}
	return told(nameMetadata(dir, name))
}

// metadataWords is what a card says of the metadata of a write.
func metadataWords(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	s := "\nwith metadata"
	for _, name := range slices.Sorted(maps.Keys(m)) {
		s += "\n  " + shown(name+": "+m[name])
	}
	return s
}
