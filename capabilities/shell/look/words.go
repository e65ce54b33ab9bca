package look

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"localpc/consent"
)

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// maxShort is how long a path may be in a sentence, in letters.
const maxShort = 60

// shown is a path in a sentence: the end of it when it is long.
func shown(p string) string {
	p = consent.Visible(p, false)
	if n := utf8.RuneCountInString(p); n > maxShort {
		r := []rune(p)
		return "…" + string(r[n-maxShort+1:])
	}
	return p
}

// words are a key in a sentence.
func words(key string) string {
	if key == "" || key == "." {
		return "the folder"
	}
	return shown(key)
}

// text is the effect's sentence.
func (y *tally) text(v verb) string {
	i := verbInfo[v]
	switch {
	case v == unknown:
		return y.cannot()
	case v == startup || v == env:
		return i.third + " " + list(y.notes, maxNotes) + i.after
	case v == settings || v == installs || v == connects || v == runs || v == reads || v == root:
		return i.third + y.object(v)
	}
	s := i.third + " " + y.what(v, true)
	switch {
	case y.files+y.dirs+len(y.outs) == 0 || y.nothingLost(v):
	case v == moves && y.parting:
		s += "; what is in the session's own folder goes when the session ends"
	case v == moves && y.files+y.dirs == 1:
		s += "; it can be moved back"
	case v == moves && len(y.outs) > 0:
	default:
		s += i.after
	}
	return s
}

// cannot is why something can't be told. A whole sentence stands as it is.
func (y *tally) cannot() string {
	var why []string
	for i, n := range y.notes {
		switch {
		case i == maxNotes:
			return strings.Join(append(why, strconv.Itoa(len(y.notes)-i)+" more reasons"), "; ")
		case i == 0 && unicode.IsLower([]rune(n)[0]):
			n = "can't be told beforehand: " + n
		}
		why = append(why, n)
	}
	return strings.Join(why, "; ")
}

// nothingLost: only folders and empty files, which are made again in no time.
func (y *tally) nothingLost(v verb) bool {
	return v == cuts && y.bytes == 0 && !y.more && len(y.outs) == 0
}

// object is what is not counted: " make and tsc".
func (y *tally) object(v verb) string {
	notes := y.notes
	for _, o := range y.outs {
		notes = append(notes, shown(o))
	}
	if len(notes) == 0 {
		switch v {
		case runs:
			return " a program"
		case reads:
			return " files"
		case connects:
			return " another computer"
		case installs:
			return " programs"
		}
		return ""
	}
	if v == settings {
		return ": " + list(notes, maxNotes)
	}
	return " " + list(notes, maxNotes)
}

// what is "214 files in Pictures, 1.3 GB", or without the bytes.
func (y *tally) what(v verb, bytes bool) string {
	switch v {
	case startup, env:
		return list(y.notes, maxNotes) + verbInfo[v].after
	case settings:
		return y.object(v)
	case root, installs:
		return strings.TrimSpace(y.object(v))
	}
	var s string
	n := y.files + y.dirs
	sized := bytes && y.bytes > 0 && (v.loses() || v == appends)
	switch {
	case n == 0 && len(y.outs) > 0:
	case n == 0 && y.more:
		s = "more files than could be counted"
	case n == 0 && v == creates:
		s = "nothing new"
	case n == 0:
		s = "nothing that is there now"
	case y.nops == len(y.ops) && y.nops == n && !y.more && !y.may && !y.upto:
		// Few enough to be named.
		var names []string
		for _, o := range y.ops {
			name := words(o.key())
			if o.isDir() {
				name = "the folder " + name
				if v == deletes {
					name = "the empty folder " + words(o.key())
				}
			}
			names = append(names, name)
		}
		s = list(names, maxNotes)
		if bytes && v.loses() && y.files > 0 || bytes && v == appends {
			s += " (" + consent.Bytes(y.bytes) + ")"
		}
	case v == creates && y.nops == 1 && y.files == 0 && y.ops[0].made == madeDir:
		s = "the folder " + words(y.ops[0].key()) // with what is missing above it
	case y.nops == 1 && y.ops[0].isDir():
		s = words(y.ops[0].key()) + " with " + y.counted(y.dirs-1)
		if sized {
			s += ", " + consent.Bytes(y.bytes)
		}
	default:
		s = y.counted(y.dirs)
		if y.where != "" && y.where != "." {
			s += " in " + words(y.where)
		}
		if sized {
			s += ", " + consent.Bytes(y.bytes)
		}
	}
	if y.to != "" && n > 0 && v == moves {
		s += " to " + words(y.to)
	}
	if len(y.outs) > 0 {
		var names []string
		for _, o := range y.outs {
			names = append(names, shown(o))
		}
		out := "files outside the folder: " + list(names, maxNotes)
		if s != "" {
			out = s + ", and " + out
		}
		s = out
	}
	return s
}

// counted is "214 files and 3 folders".
func (y *tally) counted(dirs int) string {
	var s string
	switch {
	case dirs > 0 && y.files == 0:
		s = count(dirs, "folder", "folders")
	case dirs > 0:
		s = count(y.files, "file", "files") + " and " + count(dirs, "folder", "folders")
	default:
		s = count(y.files, "file", "files")
	}
	switch {
	case y.more && (y.may || y.upto):
		return "perhaps more than " + s
	case y.more:
		return "more than " + s
	case y.may || y.upto:
		return "up to " + s
	}
	return s
}

// list is "a, b and 3 more".
func list(names []string, most int) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n > most:
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(n-most) + " more"
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// step is a part's sentence with its counts.
func (t *tallies) step(sentence string, cut bool) string {
	var notes []string
	for _, v := range []verb{deletes, replaces, edits, cuts, moves, stashes, accesses} {
		y := t[v]
		if !y.used {
			continue
		}
		y.more = y.more || cut
		n := y.files + y.dirs
		size := func() string {
			if y.bytes == 0 || v == moves || v == accesses {
				return ""
			}
			return ", " + consent.Bytes(y.bytes)
		}
		switch one := n == 1 && y.files == 1 && !y.more && !y.may && !y.upto; {
		case len(y.outs) > 0:
			notes = append(notes, "outside the folder")
		case n == 0 && y.more:
			notes = append(notes, "more files than could be counted")
		case n == 0 && v == deletes:
			notes = append(notes, "nothing that is there now")
		case n == 0 || one && v != deletes && v != replaces:
		case v == replaces:
			notes = append(notes, "replaces "+y.counted(y.dirs)+size())
		default:
			notes = append(notes, y.counted(y.dirs)+size())
		}
	}
	if len(notes) == 0 {
		return sentence
	}
	return sentence + ": " + strings.Join(notes, "; ")
}
