package judge

import "strings"

// readers show or compare files. None of their arguments does anything else.
func readers() map[string]*program {
	m := map[string]*program{}
	for name, says := range map[string]string{
		"cat": "Shows %", "tac": "Shows %, last line first", "nl": "Shows % with line numbers", "rev": "Shows the lines of % backwards",
		"head": "Shows the first lines of %", "tail": "Shows the last lines of %", "wc": "Counts the lines and words of %",
		"od": "Shows the bytes of %", "hexdump": "Shows the bytes of %", "hd": "Shows the bytes of %", "strings": "Shows the texts in %",
		"fold": "Shows % in short lines", "fmt": "Shows % with its lines filled", "pr": "Shows % in pages", "column": "Shows % as a table",
		"expand": "Shows % with blanks for tabs", "unexpand": "Shows % with tabs for blanks", "paste": "Shows the lines of % side by side",
		"comm": "Compares %", "cmp": "Compares %", "diff": "Compares %", "join": "Joins the lines of %", "tsort": "Sorts %",
		"ls": "Lists what is in %", "dir": "Lists what is in %", "vdir": "Lists what is in %", "stat": "Shows the size and dates of %",
		"du": "Shows how much room % takes", "df": "Shows how much room is left", "realpath": "Shows the full name of %", "readlink": "Shows where % leads",
		"md5sum": "Shows the checksum of %", "sha1sum": "Shows the checksum of %", "sha224sum": "Shows the checksum of %", "sha256sum": "Shows the checksum of %",
		"sha384sum": "Shows the checksum of %", "sha512sum": "Shows the checksum of %", "b2sum": "Shows the checksum of %", "cksum": "Shows the checksum of %", "sum": "Shows the checksum of %",
		"zcat": "Shows what is in %", "bzcat": "Shows what is in %", "xzcat": "Shows what is in %", "look": "Looks for a word", "pdfinfo": "Shows what kind of document % is",
	} {
		m[name] = &program{says: says, is: free}
	}
	for _, name := range []string{"ls", "dir", "vdir", "du"} {
		m[name].do = func(c *call, o *opts) {
			if len(o.rest) == 0 {
				c.reads(lit("."))
			}
			c.reads(o.rest...)
		}
	}
	// Their options with values, so that a value is not taken for a name.
	for name, short := range map[string]string{"head": "n:c:qvz", "tail": "n:c:s:fFqvz", "cut": "", "fold": "w:bs", "wc": "clmwL", "od": "A:j:N:t:w?v", "ls": "I:w:T:",
		"stat": "c:Lft", "du": "d:t:X:B:ahsckmxDL0", "diff": "U:C:I:x:X:W:F:L:qrsuNabBwityE", "nl": "b:d:f:h:i:l:n:s:v:w:p", "paste": "d:sz", "join": "t:1:2:j:a:v:e:o:i", "strings": "n:aft:e:", "column": "s:tc:o:"} {
		if p := m[name]; p != nil {
			p.short = short
		}
	}
	m["grep"] = &program{says: "Searches in %", is: free | digits, short: "EFGPivwxcLlqsbHhnoTZUazrRyIA:B:C:e:f:m:D:d:",
		long: "regexp= file= max-count= after-context= before-context= context= include= exclude= exclude-dir= exclude-from= label= color? colour? directories= devices= binary-files= recursive ignore-case line-number invert-match count files-with-matches word-regexp only-matching quiet fixed-strings extended-regexp perl-regexp no-messages",
		do: func(c *call, o *opts) {
			rest := o.rest
			if !o.has("e", "f", "regexp", "file") && len(rest) > 0 {
				rest = rest[1:]
			}
			if len(rest) == 0 && o.has("r", "R", "recursive") {
				rest = []word{lit(".")}
			}
			c.reads(rest...)
		}}
	m["jq"] = &program{says: "Reads JSON from %", is: free, short: "cnrRasSjefMC", do: func(c *call, o *opts) {
		if len(o.rest) > 0 {
			c.reads(o.rest[1:]...)
			return
		}
		c.reads()
	}}
	m["cut"] = &program{says: "Shows columns of %", is: free, short: "b:c:d:f:nsz"}
	m["rg"] = &program{says: "Searches in %", is: exact, short: "A:B:C:E:FHIKLM:NPST:UVabcd:e:f:g:hij:lm:nopqr:st:uvwxz0.",
		long: "after-context= before-context= context= encoding= fixed-strings with-filename no-filename follow max-columns= no-line-number pcre2 smart-case type= type-not= multiline text byte-offset count count-matches max-depth= regexp= file= glob= iglob= hidden no-hidden ignore-case threads= files-with-matches files-without-match max-count= line-number only-matching passthru pretty quiet replace= case-sensitive unrestricted invert-match word-regexp line-regexp files json color= colors= heading no-heading no-ignore no-ignore-vcs no-messages null null-data sort= sortr= stats trim vimgrep type-list column no-config max-filesize= one-file-system multiline-dotall crlf auto-hybrid-regex engine= field-match-separator=",
		do: func(c *call, o *opts) {
			rest := o.rest
			if !o.has("e", "f", "regexp", "file", "files", "type-list") && len(rest) > 0 {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				rest = []word{lit(".")}
			}
			c.reads(rest...)
		}}
	m["file"] = &program{says: "Shows what kind of files % are", short: "bcEhiklLNnprsSz0e:f:F:m:P:", long: "brief mime mime-type mime-encoding separator= dereference no-dereference keep-going extension files-from= magic-file= raw uncompress no-buffer print0"}
	m["tree"] = &program{says: "Lists what is in % and below", is: exact | mild | apart, short: "adfxlpsuhgDFiCASNqnrtUvcQJXL:P:I:", long: "noreport dirsfirst filelimit= charset= prune du si inodes device gitignore ignore-case matchdirs sort= timefmt=", do: func(c *call, o *opts) {
		if len(o.rest) == 0 {
			c.reads(lit("."))
		}
		c.reads(o.rest...)
	}}
	m["base64"] = &program{says: "Turns % into text, or back", short: "diw:", long: "decode ignore-garbage wrap=", is: mild}
	m["base32"], m["basenc"] = m["base64"], &program{says: "Turns % into text, or back", short: "diw:", long: "decode ignore-garbage wrap= base64 base64url base32 base32hex base16 base2msbf base2lsbf z85", is: mild}
	return m
}

// printers print something that is in no file, or of the machine.
func printers() map[string]*program {
	m := map[string]*program{}
	for name, says := range map[string]string{
		"echo": "Shows a text", "printf": "Shows a text", "pwd": "Shows the folder it works in", "whoami": "Shows who is signed in", "id": "Shows who is signed in",
		"groups": "Shows who is signed in", "uname": "Shows what system this is", "nproc": "Shows how many processors there are", "arch": "Shows what processor this is",
		"tty": "Shows the terminal", "printenv": "Shows variables", "basename": "Shows a part of a name", "dirname": "Shows a part of a name", "seq": "Counts", "yes": "Repeats a text",
		"factor": "Calculates", "expr": "Calculates", "true": "Does nothing", "false": "Does nothing", "sleep": "Waits", "test": "Checks something", "[": "Checks something",
		"numfmt": "Writes numbers in another way", "getconf": "Shows facts about the system", "which": "Shows where programs are", "whereis": "Shows where programs are",
		"cal": "Shows a calendar", "uptime": "Shows how long the computer has been running", "w": "Shows who is signed in", "who": "Shows who is signed in", "users": "Shows who is signed in",
		"free": "Shows how much memory is free", "vmstat": "Shows how busy the computer is", "lscpu": "Shows what processor this is", "lsblk": "Lists the disks",
		"ps": "Lists the running programs", "pgrep": "Looks for running programs", "pidof": "Looks for running programs", "pstree": "Lists the running programs",
		"tr": "Replaces letters", "locale": "Shows the language settings", "locate": "Looks for files by name", "getopt": "Reads options", "clear": "Clears the screen",
	} {
		m[name] = &program{says: says, is: free | data}
	}
	settings := func(what string) func(*call, *opts) {
		return func(c *call, o *opts) {
			c.act(Act{Op: Read})
			for _, w := range o.rest {
				switch {
				case w.sureness != sure && (w.text == "" || w.text[0] != '+'):
					c.unknown("whether " + what + " is set: " + loosely(w) + " decides it")
				case w.text == "" || w.text[0] != '+':
					c.act(Act{Op: Settings, What: what})
				}
			}
			if o.has("s", "set") {
				c.act(Act{Op: Settings, What: what})
			}
		}
	}
	m["date"] = &program{says: "Shows the date", short: "d:f:I?r:Rus:", long: "date= file= iso-8601? reference= rfc-email rfc-3339= utc universal set= debug", do: settings("the computer's clock")}
	m["hostname"] = &program{says: "Shows the computer's name", short: "afiIsAd", long: "short long fqdn ip-address all-ip-addresses", do: settings("the computer's name")}
	return m
}

// filters turn text into other text; some can write files or run programs.
func filters() map[string]*program {
	writesTo := func(names ...string) func(*call, *opts) {
		return func(c *call, o *opts) {
			c.reads(o.rest...)
			for _, f := range o.each(names...) {
				c.on(Write, f)
			}
		}
	}
	second := func(c *call, o *opts) {
		c.reads(o.rest[:min(1, len(o.rest))]...)
		if c.many(o.rest[:min(1, len(o.rest))]) || len(o.rest) == 1 && o.rest[0].sureness == pattern {
			c.unknown("how many names it gets is only known when it runs, and it writes to the second")
		}
		if len(o.rest) > 1 {
			c.on(Write, o.rest[1])
		}
	}
	return map[string]*program{
		"sort": {says: "Sorts the lines of %", short: "bdfghinMRrVcCmuszo:k:t:S:T:", long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting month-sort numeric-sort random-sort random-source= reverse sort= version-sort batch-size= check? compress-program= debug files0-from= key= merge output= stable buffer-size= field-separator= temporary-directory= parallel= unique zero-terminated",
			do: func(c *call, o *opts) {
				writesTo("o", "output")(c, o)
				for _, d := range o.each("T", "temporary-directory") {
					c.on(Create, d)
				}
				if p, ok := o.get("compress-program"); ok {
					c.act(Act{Op: Run, Program: p.text})
					c.unknown("it runs the program " + described(p))
				}
			}},
		"uniq":  {says: "Leaves out repeated lines of %", short: "cdDiuf:s:w:z", long: "count repeated all-repeated? group? skip-fields= ignore-case skip-chars= unique check-chars= zero-terminated", is: digits, do: second},
		"shuf":  {says: "Shuffles the lines of %", short: "ei:n:o:rz", long: "echo input-range= head-count= output= random-source= repeat zero-terminated", do: writesTo("o", "output")},
		"iconv": {says: "Changes how the letters of % are stored", short: "f:t:lcso:", long: "from-code= to-code= list output= silent verbose byte-subst=", do: writesTo("o", "output")},
		"xxd": {says: "Shows the bytes of %", short: "abeiprudc:g:l:s:o:", is: exact, do: func(c *call, o *opts) {
			for _, a := range c.args[1:] {
				// It reads no letters behind another one.
				if len(a.text) > 2 && a.text[0] == '-' && a.text != "-ps" && (strings.IndexByte("cglso", a.text[1]) < 0 || !isDigits(a.text[2:])) {
					c.unknown("the option " + a.text + " of xxd is not one that is known here")
				}
			}
			second(c, o)
		}},
		"tee": {says: "Shows its input and keeps it", short: "aip", long: "append ignore-interrupts output-error?", is: mild, do: func(c *call, o *opts) {
			op := Write
			if o.has("a", "append") {
				op = Append
			}
			c.on(op, o.rest...)
		}},
		"split": {says: "Cuts % into pieces", short: "a:b:C:d?el:x?n:t:u", long: "suffix-length= additional-suffix= bytes= line-bytes= numeric-suffixes? hex-suffixes? elide-empty-files filter= lines= number= separator= unbuffered verbose", is: digits, do: split},
		"csplit": {says: "Cuts % into pieces", short: "b:f:kn:sz", long: "suffix-format= prefix= keep-files digits= quiet silent elide-empty-files suppress-matched", do: func(c *call, o *opts) {
			prefix, ok := o.get("f", "prefix")
			if !ok {
				prefix = lit("xx")
			}
			c.pieces(prefix)
		}},
		"sed": {says: "Shows % with changes", short: "nErsuzbe:f:i?l:", long: "quiet silent regexp-extended expression= file= in-place? line-length= posix separate unbuffered null-data binary follow-symlinks sandbox debug", do: sed},
		"awk": {says: "Picks parts out of %", short: "F:v:f:", long: "field-separator= assign= file=", is: stops | exact, do: awk},
	}
}

func split(c *call, o *opts) {
	if f, ok := o.get("filter"); ok {
		c.joinedPart(f)
		return
	}
	prefix := lit("x")
	if len(o.rest) > 1 {
		prefix = o.rest[1]
	}
	if c.many(o.rest) {
		prefix = unknown("how many names it gets")
	}
	c.reads(o.rest[:min(1, len(o.rest))]...)
	c.pieces(prefix)
}

// pieces notes files that begin with a prefix.
func (c *call) pieces(prefix word) {
	if prefix.sureness != sure || strings.HasPrefix(prefix.text, "/dev/") {
		c.unknown("where the pieces go is only known when it runs")
		return
	}
	c.on(Write, word{text: escape(prefix.text) + "*", sureness: pattern})
}

// joinedPart judges a text that a program gives to a shell, beside what the
// program itself does.
func (c *call) joinedPart(text word) {
	if text.sureness != sure {
		c.unknown("the commands that " + c.name + " gets: " + loosely(text) + " decides them")
		return
	}
	d := &call{w: c.w, fr: c.fr, st: c.st.clone(), in: input{piped: true, typed: c.in.typed}, text: c.text, name: c.name, via: c.via, envs: c.envs}
	d.inText(text.text, true, nil)
}
