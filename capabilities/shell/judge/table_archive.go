package judge

import (
	"path"
	"slices"
	"strings"
)

// archives pack and unpack.
func archives() map[string]*program {
	return map[string]*program{
		"tar":    {is: free | alone, says: "Shows what is in %", do: tar},
		"unzip":  {is: free | alone, says: "Shows what is in %", do: unzip},
		"zip":    {short: "0123456789rqvjyufFXDoAJ@gclnTmdx:i:t:b:P:s:e", long: "recurse-paths quiet verbose junk-paths symlinks update freshen move delete exclude= include=", is: exact, do: zip},
		"gzip":   {short: "cdfhjklLnNqrtvVT:o:123456789zeC", long: "stdout to-stdout decompress uncompress force keep list quiet recursive test verbose fast best threads= compress suffix=", is: alone, says: "Shows what is in %", do: gzip},
		"gunzip": {short: "cfhklLnNqrtvT:", long: "stdout to-stdout force keep list quiet recursive test verbose", is: alone, says: "Shows what is in %", do: gzip},
		"7z":     {is: free | alone, says: "Shows what is in %", do: sevenZip},
		"cpio":   {is: free, do: func(c *call, o *opts) { c.unknown("what is in the archive is only known when it runs") }},
		"unrar":  {is: free, do: func(c *call, o *opts) { c.unknown("what is in the archive is only known when it runs") }},
		"ar":     {is: free, do: func(c *call, o *opts) { c.unknown("what is in the archive is only known when it runs") }},
	}
}

const tarShort = "ctxruAdvzjJZakmpOwBhilsSGnWRf:C:T:X:b:g:N:V:"

var tarGrammar = &program{short: tarShort, is: exact, long: "create list extract get append update concatenate catenate diff compare verbose gzip gunzip bzip2 xz zstd lzma compress auto-compress keep-old-files keep-newer-files skip-old-files overwrite touch preserve-permissions same-permissions to-stdout file= directory= files-from= exclude= exclude-from= exclude-vcs exclude-backups strip-components= transform= xform= owner= group= mode= mtime= sort= numeric-owner same-owner no-same-owner no-same-permissions no-recursion recursion wildcards no-wildcards anchored no-anchored ignore-case null dereference totals show-transformed-names one-file-system sparse format= blocking-factor= warning= one-top-level? label= pax-option= utc full-time quoting-style= remove-files unlink-first recursive-unlink absolute-names delete no-overwrite-dir one-top-level= hard-dereference force-local exclude-caches"}

func tar(c *call, _ *opts) {
	args := slices.Clone(c.args[1:])
	if len(args) > 0 && args[0].sureness == sure && args[0].text != "" && args[0].text[0] != '-' {
		args = tarBundle(args)
	}
	o := c.options(tarGrammar, args)
	if o.bad != "" {
		c.unknown("the option " + o.bad + " of tar is not one that is known here")
		return
	}
	if o.loose != "" {
		c.unknown(o.loose)
		return
	}
	file, hasFile := o.get("f", "file")
	if hasFile && file.sureness == sure && strings.Contains(file.text, ":") && !o.has("force-local") {
		c.unknown("the archive may be on another computer")
		return
	}
	dirs := o.each("C", "directory")
	st := c.st
	modes := 0
	for _, m := range [][]string{{"c", "create"}, {"t", "list"}, {"x", "extract", "get"}, {"r", "append"}, {"u", "update"}, {"A", "concatenate", "catenate"}, {"d", "diff", "compare"}, {"delete"}} {
		if o.has(m...) {
			modes++
		}
	}
	if modes != 1 {
		c.unknown("what tar does with the archive is not clear")
		return
	}
	onDisk := hasFile && !file.is("-")
	switch {
	case o.has("c", "create", "r", "append", "u", "update", "A", "concatenate", "catenate", "delete"):
		if onDisk {
			op := Edit
			if o.has("c", "create") {
				op = Write
			}
			c.on(op, file)
		} else if !hasFile {
			c.unknown("it may write to a tape")
		}
		for _, d := range dirs {
			c.inDir(d)
		}
		if o.has("remove-files") {
			if ps, ok := c.names(opWhat(Delete), o.rest...); ok {
				c.act(Act{Op: Delete, Paths: ps, Recursive: true})
			}
		}
		c.reads(o.rest...)
		c.st = st
	case o.has("t", "list", "d", "diff", "compare"):
		c.reads(file)
	default:
		c.act(Act{Op: Read})
		if o.has("O", "to-stdout") {
			c.reads(file)
			return
		}
		if o.has("P", "absolute-names", "T", "files-from", "transform", "xform", "recursive-unlink", "unlink-first", "one-top-level") {
			c.unknown("where the files go is not clear")
		}
		if !onDisk {
			c.unknown("what is in the archive is only known when it runs")
			return
		}
		listing := []string{"tar", "-tf"}
		c.extract(file, dirs, !o.has("k", "keep-old-files", "skip-old-files"), func(a string) []string { return append(slices.Clone(listing), a) })
	}
}

// extract notes what an archive brings into the folder, or those given.
func (c *call) extract(archive word, dirs []word, replaces bool, list func(string) []string) {
	st := c.st
	from, ok := c.names("which archive", archive)
	for _, d := range dirs {
		c.inDir(d)
	}
	into := c.st.cwd
	c.st = st
	if !ok || len(from) == 0 || archive.sureness == pattern {
		if archive.sureness == pattern {
			c.unknown("which archive: its name stands in a pattern")
		}
		return
	}
	if len(into) == 0 {
		c.unknown(opWhat(Extract) + ": the folder is only known when it runs")
		return
	}
	for _, f := range from {
		for _, d := range into {
			c.act(Act{Op: Extract, From: []Path{f}, Into: &Path{Name: d}, Argv: list(f.Name), Replaces: replaces, Dir: d})
		}
	}
}

// tarBundle writes "xvf a.tar" with dashes: the values come in the order of
// the letters.
func tarBundle(args []word) []word {
	var out []word
	rest := args[1:]
	for i := 0; i < len(args[0].text); i++ {
		l := args[0].text[i : i+1]
		out = append(out, lit("-"+l))
		if k := strings.Index(tarShort, l); k >= 0 && k+1 < len(tarShort) && tarShort[k+1] == ':' && len(rest) > 0 {
			out = append(out, rest[0])
			rest = rest[1:]
		}
	}
	return append(out, rest...)
}

func unzip(c *call, _ *opts) {
	p := &program{short: "lvZtpzcoqnjufaACLMKWXbd:P:x:", is: exact}
	o := c.options(p, c.args[1:])
	if o.bad != "" || o.loose != "" {
		c.unknown("an option of unzip that is not known here, or only when it runs")
		return
	}
	if len(o.rest) == 0 {
		c.act(Act{Op: Read})
		return
	}
	c.reads(o.rest[0])
	if o.has("l", "v", "Z", "t", "p", "z", "c") {
		return
	}
	archive := o.rest[0]
	if archive.sureness == sure && path.Ext(archive.text) == "" {
		archive.text += ".zip"
	}
	c.extract(archive, o.each("d"), !o.has("n"), func(a string) []string { return []string{"unzip", "-Z1", a} })
}

func zip(c *call, o *opts) {
	for _, a := range c.args[1:] {
		// It reads some letters in twos: -TT runs a program, -lf writes a file.
		if a.sureness == sure && len(a.text) > 2 && a.text[0] == '-' && a.text[1] != '-' && strings.Trim(a.text[1:], "0123456789rqvjyXDoAm@") != "" {
			c.unknown("the option " + a.text + " of zip is not one that is known here")
		}
	}
	if len(o.rest) == 0 || o.rest[0].many {
		c.unknown("which archive is written is only known when it runs")
		return
	}
	archive := o.rest[0]
	if archive.sureness == sure && path.Ext(archive.text) == "" {
		archive.text += ".zip"
	}
	if !archive.is("-.zip") && !archive.is("-") {
		c.on(Edit, archive)
	}
	if o.has("m", "move") {
		if ps, ok := c.names(opWhat(Delete), o.rest[1:]...); ok {
			c.act(Act{Op: Delete, Paths: ps, Recursive: o.has("r", "recurse-paths")})
		}
	}
	c.reads(o.rest[1:]...)
}

// gzip judges the programs that pack one file, which take the place of it.
func gzip(c *call, o *opts) {
	if o.has("c", "stdout", "to-stdout", "t", "test", "l", "list") && !o.has("o") {
		c.reads(o.rest...)
		return
	}
	if len(o.rest) == 0 {
		c.act(Act{Op: Read})
		if o.has("o") {
			c.on(Write, o.each("o")...)
		}
		return
	}
	if o.has("r", "recursive", "o", "suffix") {
		c.unknown("which files it packs is only known when it runs")
		return
	}
	unpack := strings.HasPrefix(c.name, "un") || c.name == "gunzip" || c.name == "bunzip2" || o.has("d", "decompress", "uncompress")
	ending := map[string]string{"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst", "lzma": ".lzma", "lz4": ".lz4", "pigz": ".gz", "pbzip2": ".bz2", "lbzip2": ".bz2", "pixz": ".xz", "compress": ".Z", "brotli": ".br", "zopfli": ".gz"}[c.name]
	var to []word
	for _, f := range o.rest {
		if f.sureness != sure && f.sureness != pattern {
			c.unknown("which files it packs: " + loosely(f) + " decides it")
			return
		}
		if unpack {
			f.text = strings.TrimSuffix(f.text, path.Ext(f.text))
		} else {
			f.text += ending
		}
		to = append(to, f)
	}
	c.reads(o.rest...)
	c.on(Write, to...)
	if !o.has("k", "keep") && c.name != "zstd" && c.name != "lz4" && c.name != "zopfli" && (c.name != "brotli" || o.has("j")) {
		c.on(Delete, o.rest...)
	}
}

func sevenZip(c *call, _ *opts) {
	args := c.args[1:]
	ts, ok := texts(args)
	if !ok || len(ts) < 2 {
		c.unknown("what it does with the archive is only known when it runs")
		return
	}
	var rest []word
	var dirs []word
	for _, a := range ts[1:] {
		switch {
		case a == "-y" || a == "-r" || strings.HasPrefix(a, "-m") || strings.HasPrefix(a, "-t") || strings.HasPrefix(a, "-p") || strings.HasPrefix(a, "-x"):
		case strings.HasPrefix(a, "-o"):
			dirs = []word{lit(a[2:])}
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "@"):
			c.unknown("the option " + a + " of " + c.name + " is not one that is known here")
			return
		default:
			rest = append(rest, lit(a))
		}
	}
	if len(rest) == 0 {
		c.act(Act{Op: Read})
		return
	}
	switch ts[0] {
	case "l", "t":
		c.reads(rest[0])
	case "x", "e":
		c.reads(rest[0])
		c.extract(rest[0], dirs, true, func(a string) []string { return []string{"7z", "l", "-ba", "-slt", a} })
	case "a", "u", "d":
		c.on(Edit, rest[0])
		c.reads(rest[1:]...)
	default:
		c.unknown("what it does with the archive is not known here")
	}
}
