package judge

import (
	"slices"
	"strings"
)

// changers make, change, move and delete files.
func changers() map[string]*program {
	chmodLong := "changes quiet silent verbose recursive reference= no-preserve-root preserve-root dereference no-dereference from="
	return map[string]*program{
		"rm":     {short: "fiIrRdv", long: "force interactive? one-file-system no-preserve-root preserve-root? recursive dir verbose", is: mild, do: rm},
		"unlink": {is: mild, do: func(c *call, o *opts) { c.on(Delete, o.rest...) }},
		"rmdir":  {short: "pv", long: "ignore-fail-on-non-empty parents verbose", is: mild, do: func(c *call, o *opts) { c.on(Delete, o.rest...) }},
		"mv": {short: "bfinTuvS:t:Z", long: "backup? force interactive no-clobber no-target-directory suffix= target-directory= update? verbose strip-trailing-slashes exchange debug", is: mild,
			do: func(c *call, o *opts) {
				if o.has("exchange") {
					c.unknown("it swaps names")
				}
				c.transfer(Move, o, o.rest, o.has("n", "no-clobber"), true)
			}},
		"cp": {short: "abdfiHlLnPprRst:S:TuvxZ", long: "archive attributes-only backup? copy-contents force interactive link dereference no-clobber no-dereference preserve? no-preserve= parents recursive reflink? remove-destination sparse= strip-trailing-slashes symbolic-link suffix= target-directory= no-target-directory update? verbose one-file-system keep-directory-symlink debug", is: mild,
			do: func(c *call, o *opts) {
				op := Copy
				if o.has("l", "s", "link", "symbolic-link") {
					op = Link
				}
				c.transfer(op, o, o.rest, o.has("n", "no-clobber"), o.has("r", "R", "a", "recursive", "archive"))
			}},
		"ln": {short: "bfiLnPrsS:t:Tv", long: "backup? force interactive logical no-dereference physical relative symbolic suffix= target-directory= no-target-directory verbose", is: mild,
			do: func(c *call, o *opts) {
				rest := o.rest
				if len(rest) == 1 && !o.has("t", "target-directory") {
					rest = append(slices.Clone(rest), lit("."))
				}
				c.transfer(Link, o, rest, !o.has("f", "force"), false)
			}},
		"link": {is: mild, do: func(c *call, o *opts) { c.transfer(Link, o, o.rest, true, false) }},
		"install": {short: "bcCdDg:m:o:pst:TvS:", long: "backup? compare directory group= mode= owner= preserve-timestamps strip suffix= target-directory= no-target-directory verbose", is: mild,
			do: func(c *call, o *opts) {
				if o.has("d", "directory") {
					c.on(Create, o.rest...)
					return
				}
				c.transfer(Copy, o, o.rest, false, false)
			}},
		"mkdir":  {short: "pvm:", long: "parents verbose mode=", is: mild, do: func(c *call, o *opts) { c.on(Create, o.rest...) }},
		"mkfifo": {short: "m:", long: "mode=", is: mild, do: func(c *call, o *opts) { c.on(Create, o.rest...) }},
		"touch":  {short: "acfhmd:r:t:", long: "no-create date= no-dereference reference= time=", is: mild, do: func(c *call, o *opts) { c.on(Create, o.rest...) }},
		"mktemp": {short: "duqtp:", long: "directory dry-run quiet suffix= tmpdir?", do: mktemp},
		"chmod": {short: "cfvRrwxXstugoa", long: chmodLong, is: mild, do: func(c *call, o *opts) {
			rest := o.rest
			if !o.has("r", "w", "x", "X", "s", "t", "u", "g", "o", "a", "reference") && len(rest) > 0 {
				if rest = rest[1:]; o.rest[0].many {
					c.unknown("whose permissions change: " + loosely(o.rest[0]) + " may be several words")
				}
			}
			c.access(o, rest)
		}},
		"chown":   {short: "cfvhRHLP", long: chmodLong, is: mild, do: owner},
		"chgrp":   {short: "cfvhRHLP", long: chmodLong, is: mild, do: owner},
		"setfacl": {short: "bkRLPdnm:x:", long: "remove-all remove-default no-mask default recursive logical physical modify= remove=", is: mild, do: func(c *call, o *opts) { c.access(o, o.rest) }},
		"chattr": {is: free, do: func(c *call, o *opts) {
			var files []word
			rec := false
			for _, a := range c.args[1:] {
				if a.sureness == sure && a.text != "" && strings.ContainsAny(a.text[:1], "-+=") {
					rec = rec || strings.Contains(a.text, "R")
					continue
				}
				files = append(files, a)
			}
			if ps, ok := c.names(opWhat(Access), files...); ok {
				c.act(Act{Op: Access, Paths: ps, Recursive: rec})
			}
		}},
		"truncate": {short: "cor:s:", long: "no-create io-blocks reference= size=", is: mild, do: func(c *call, o *opts) { c.on(Truncate, o.rest...) }},
		"shred": {short: "fn:s:uvxz", long: "force iterations= random-source= size= remove? verbose exact zero", is: mild, do: func(c *call, o *opts) {
			if o.has("u", "remove") {
				c.on(Delete, o.rest...)
				return
			}
			c.on(Write, o.rest...)
		}},
		"dd": {is: free | alone, says: "Shows %", do: dd},
		"patch": {short: "p:i:RNEd:bo:sfutvcl", long: "strip= input= reverse forward remove-empty-files directory= backup output= silent quiet force batch unified verbose dry-run", do: func(c *call, o *opts) {
			if i, ok := o.get("i", "input"); ok {
				c.reads(i)
			}
			if d, ok := o.get("d", "directory"); ok {
				c.inDir(d)
			}
			if f, ok := o.get("o", "output"); ok {
				c.on(Write, f)
				return
			}
			if len(o.rest) > 0 {
				c.on(Edit, o.rest[0])
				return
			}
			c.unknown("which files are changed stands in the patch")
		}},
		"rename": {is: free, do: func(c *call, o *opts) { c.unknown("which names change is only known when it runs") }},
		"vi":     {is: free, do: editor}, "nano": {is: free, do: editor}, "emacs": {is: free, do: editor}, "ed": {is: free, do: editor},
	}
}

func editor(c *call, o *opts) {
	c.act(Act{Op: Run, Program: c.name})
	c.unknown("an editor writes and runs what it is told when it runs")
}

func owner(c *call, o *opts) {
	rest := o.rest
	if !o.has("reference") && len(rest) > 0 {
		if rest = rest[1:]; o.rest[0].many {
			c.unknown("whose owner changes: " + loosely(o.rest[0]) + " may be several words")
		}
	}
	c.access(o, rest)
}

func (c *call) access(o *opts, rest []word) {
	rec := o.has("R", "recursive")
	if f, words, ok := c.chosen(rest); ok {
		o.settled = true
		if ps, ok := c.names(opWhat(Access), f.roots...); ok {
			c.act(Act{Op: Access, Paths: ps, Recursive: rec, Find: f.copy()})
		}
		rest = words
	}
	if len(rest) == 0 {
		return
	}
	if ps, ok := c.names(opWhat(Access), rest...); ok {
		c.act(Act{Op: Access, Paths: ps, Recursive: rec})
	}
}

// chosen finds the word that stands for what a find gives.
func (c *call) chosen(rest []word) (f *found, others []word, ok bool) {
	if c.in.find == nil {
		return nil, rest, false
	}
	for _, w := range rest {
		if w.sureness == unsure && w.why == foundBy && (w.text == "./" || w.text == "") {
			ok = true
			continue
		}
		others = append(others, w)
	}
	return c.in.find, others, ok
}

func rm(c *call, o *opts) {
	rec := o.has("r", "R", "recursive")
	rest := o.rest
	if f, words, ok := c.chosen(rest); ok {
		if ps, ok := c.names(opWhat(Delete), f.roots...); ok {
			c.act(Act{Op: Delete, Paths: ps, Recursive: rec, Find: f.copy()})
		}
		o.settled = true
		if rest = words; len(rest) == 0 {
			return
		}
	}
	if len(rest) == 0 {
		return
	}
	if ps, ok := c.names(opWhat(Delete), rest...); ok && len(ps) > 0 {
		c.act(Act{Op: Delete, Paths: ps, Recursive: rec})
	}
}

// transfer is what mv, cp, ln and install share: names that go to another one,
// or into a folder. Where it may happen in several folders, it is said for each.
func (c *call) transfer(op Op, o *opts, rest []word, keeps, recursive bool) {
	target, hasTarget := o.get("t", "target-directory")
	into := hasTarget
	if !hasTarget {
		if len(rest) < 2 {
			if c.many(rest) || len(rest) == 1 && rest[0].sureness == pattern {
				c.unknown("where it goes: the last of the names is only known when it runs")
			}
			return
		}
		target, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
	for _, w := range append(slices.Clone(rest), target) {
		if w.many {
			c.unknown(opWhat(op) + ": " + loosely(w) + " may be several names")
			return
		}
	}
	if newTemp(target) {
		target = lit(target.text)
	}
	several := len(rest) > 1 || rest[0].sureness == pattern
	if target.sureness == pattern && !several && rest[0].sureness == sure && !hasTarget {
		c.unknown(opWhat(op) + ": the last of the names stands in a pattern")
		return
	}
	if target.sureness == pattern && rest[0].sureness != pattern {
		c.unknown(opWhat(op) + ": the last of the names stands in a pattern")
		return
	}
	into = (into || len(rest) > 1 || strings.HasSuffix(target.text, "/") || target.is(".") || target.is("..") || strings.HasSuffix(target.text, "/..") || strings.HasSuffix(target.text, "/.")) && !o.has("T", "no-target-directory")
	if len(rest) > 1 {
		into = true
	}
	st := c.st
	dirs := st.cwd
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	for _, d := range dirs {
		s := st.clone()
		if s.cwd = nil; d != "" {
			s.cwd = []string{d}
		}
		c.st = s
		to, ok := c.names(opWhat(op), target)
		if !ok || len(to) == 0 {
			break
		}
		a := Act{Op: op, Recursive: recursive, Replaces: !keeps, Exact: o.has("T", "no-target-directory") || c.name == "link", Itself: c.name == "ln" && o.has("n", "no-dereference")}
		if op == Link && !o.has("l", "link", "P") && c.name == "ln" && o.has("s", "symbolic") || op == Link && o.has("s", "symbolic-link") {
			// What a symbolic link points to is not touched.
			for _, w := range rest {
				if w.sureness == sure {
					a.From = append(a.From, c.linkText(w))
				}
			}
		} else if a.From, ok = c.names(opWhat(op), rest...); !ok {
			break
		}
		if into {
			a.Into = &to[0]
		} else {
			a.Paths = to[:1]
		}
		c.act(a)
		if o.has("b", "backup", "S", "suffix") {
			c.unknown("it keeps what it replaces under other names")
		}
	}
	c.st = st
}

func (c *call) linkText(w word) Path {
	if ps, why := c.w.paths(c.st, w); why == "" && len(ps) > 0 {
		return ps[0]
	}
	return Path{Name: w.text}
}

func mktemp(c *call, o *opts) {
	if o.has("u", "dry-run") {
		c.act(Act{Op: Read})
		return
	}
	dir := ""
	for _, x := range o.list {
		switch x.name {
		case "p", "tmpdir":
			if x.has && x.val.sureness != sure {
				c.unknown("where it makes the file is only known when it runs")
				return
			}
			dir = "/tmp/"
			if x.has && x.val.text != "" {
				dir = x.val.text + "/"
			}
		case "t":
			dir = "/tmp/"
		}
	}
	template := lit("/tmp/tmp.*")
	if len(o.rest) > 0 {
		if template = o.rest[0]; template.sureness != sure {
			c.unknown("where it makes the file is only known when it runs")
			return
		}
		template.text = strings.ReplaceAll(escape(dir+template.text), strings.Repeat("X", 3), "*")
	} else if dir != "" && dir != "/tmp/" {
		template.text = escape(dir) + "tmp.*"
	}
	c.on(Create, word{text: template.text, sureness: pattern})
}

func dd(c *call, o *opts) {
	op := Write
	var out []word
	c.act(Act{Op: Read})
	for _, a := range c.args[1:] {
		key, v, _ := strings.Cut(a.text, "=")
		if a.many || a.sureness == pattern || a.sureness == unsure && !strings.Contains(a.text, "=") {
			c.unknown("which file is written: " + loosely(a) + " decides it")
			continue
		}
		w := a
		w.text = v
		switch key {
		case "if":
			c.reads(w)
		case "of":
			out = append(out, w)
		case "conv", "oflag":
			if strings.Contains(v, "notrunc") || strings.Contains(v, "append") || a.sureness != sure {
				op = Edit
			}
		case "bs", "ibs", "obs", "cbs", "count", "skip", "seek", "iseek", "oseek", "status", "iflag":
			if key == "seek" || key == "oseek" {
				op = Edit
			}
		case "--help", "--version":
		default:
			c.unknown("the option " + key + " of dd is not one that is known here")
		}
	}
	c.on(op, out...)
}
