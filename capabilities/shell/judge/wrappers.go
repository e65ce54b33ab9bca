package judge

import (
	"slices"
	"strings"
)

// wrappers are programs that start the program that stands after their
// options.
func wrappers() map[string]*program {
	after := func(n int) func(*call, *opts) {
		return func(c *call, o *opts) { c.startAfter(o, n) }
	}
	p := stops | inner | exact
	return map[string]*program{
		"nice":    {short: "n:", long: "adjustment=", is: p | digits, do: after(0)},
		"setsid":  {short: "cfw", long: "ctty fork wait", is: p, do: after(0)},
		"stdbuf":  {short: "i:o:e:", long: "input= output= error=", is: p, do: after(0)},
		"timeout": {short: "k:s:v", long: "foreground kill-after= preserve-status signal= verbose", is: p, do: after(1)},
		"nohup": {is: p, do: func(c *call, o *opts) {
			c.on(Append, lit("nohup.out"))
			c.startAfter(o, 0)
		}},
		"ionice":  {short: "c:n:t", long: "class= classdata= ignore", is: p, do: after(0)},
		"chrt":    {short: "abdfiomrRvT:P:D:", is: p, do: after(1)},
		"taskset": {short: "ac", long: "all-tasks cpu-list", is: p, do: after(1)},
		"time": {short: "apvqo:f:", long: "append portability verbose quiet output= format=", is: p, do: func(c *call, o *opts) {
			if f, ok := o.get("o", "output"); ok {
				c.on(Write, f)
			}
			c.startAfter(o, 0)
		}},
		"flock": {short: "sexnuoFw:c:E:", long: "shared exclusive unlock nonblock nb timeout= wait= command= close no-fork conflict-exit-code= verbose", is: p, do: flock},
		"env":   {short: "i0vu:C:S:", long: "ignore-environment null debug unset= chdir= split-string=", is: p, do: envRun},
		"sudo": {short: "AbBEHKknPSVvD:g:p:R:T:u:ilse", long: "askpass background chdir= group= set-home login non-interactive preserve-env? preserve-groups stdin shell user= edit list validate remove-timestamp reset-timestamp",
			is: p, do: sudo},
		"doas":    {short: "nsu:", is: p, do: sudo},
		"pkexec":  {long: "user= disable-internal-agent keep-cwd", is: p, do: sudo},
		"su":      {short: "c:lmps:g:G:", long: "command= login shell= preserve-environment group=", is: inner, do: su},
		"runuser": {short: "c:lmps:g:G:u:", long: "command= login shell= preserve-environment group= user=", is: inner | stops, do: su},
		"xargs":   {short: "0prtxoa:d:E:e?I:i?L:l?n:P:s:J:R:", long: "null interactive no-run-if-empty verbose exit arg-file= delimiter= eof? replace? max-lines? max-args= max-procs= max-chars= open-tty show-limits", is: p, do: xargs},
		"parallel": {is: free | inner, do: func(c *call, o *opts) {
			c.act(Act{Op: Run, Program: c.name})
			c.unknown("parallel makes commands of what it reads")
		}},
		"watch": {short: "bcdegtpxn:q:r", long: "beep color differences? errexit chgexit interval= no-title precise exec", is: p, do: func(c *call, o *opts) {
			if o.has("x", "exec") {
				c.startAfter(o, 0)
				return
			}
			c.joined(o.rest)
		}},
		"script": {short: "aefqc:", long: "append command= return flush quiet", do: func(c *call, o *opts) {
			file := lit("typescript")
			if len(o.rest) > 0 {
				file = o.rest[0]
			}
			op := Write
			if o.has("a", "append") {
				op = Append
			}
			c.on(op, file)
			if text, ok := o.get("c", "command"); ok {
				c.joined([]word{text})
				return
			}
			c.unknown("it starts a shell that gets its commands when it runs")
		}},
		"strace":            {short: "fFqrtTvxydDcCikwzZo:e:p:s:a:b:O:S:P:I:X:", is: p, do: trace},
		"ltrace":            {short: "fCiLrStTco:e:p:s:n:a:x:l:", is: p, do: trace},
		"unshare":           {short: "imnpuUCTrfc", long: "map-root-user map-current-user fork user mount net pid ipc uts", is: p, do: after(0)},
		"chroot":            {is: free | inner, do: elsewhere("it runs with another folder as the root of all")},
		"nsenter":           {is: free | inner, do: elsewhere("it runs in the surroundings of another program")},
		"systemd-run":       {is: free | inner, do: elsewhere("the system runs it on its own")},
		"start-stop-daemon": {is: free | inner, do: elsewhere("it goes on running on its own")},
		"tmux":              {is: free | inner, do: elsewhere("it goes on running in a terminal of its own")},
		"screen":            {is: free | inner, do: elsewhere("it goes on running in a terminal of its own")},
		"busybox":           {is: p, do: func(c *call, o *opts) { c.startAfter(o, 0) }},
		"sh":                {is: free | inner, do: func(c *call, o *opts) { c.shell(true) }},
		"dash":              {is: free | inner, do: func(c *call, o *opts) { c.shell(true) }},
		"bash":              {is: free | inner, do: func(c *call, o *opts) { c.shell(false) }},
		"find":              {is: free | inner, says: "Looks for files in %", do: find},
		"fd":                {is: free | inner, says: "Looks for files in %", do: fd},
	}
}

// startAfter starts what stands after n operands of the wrapper's own.
func (c *call) startAfter(o *opts, n int) {
	if len(o.rest) < n || c.many(o.rest[:min(n, len(o.rest))]) || slices.ContainsFunc(o.rest[:min(n, len(o.rest))], word.mayBeOption) {
		if len(o.rest) > 0 {
			c.unknown("which program it runs is only known when it runs")
		}
		return
	}
	if o.loose != "" && len(o.rest) == 0 {
		c.unknown(o.loose)
	}
	c.startBare(o.rest[n:])
}

func elsewhere(why string) func(*call, *opts) {
	return func(c *call, o *opts) {
		c.act(Act{Op: Run, Program: c.name})
		c.unknown(why)
	}
}

// joined is for wrappers that give their words to a shell as one text.
func (c *call) joined(ws []word) {
	ts, ok := texts(ws)
	if !ok {
		c.unknown("the commands that " + c.name + " gets are only known when it runs")
		return
	}
	c.inText(strings.Join(ts, " "), true, nil)
}

func flock(c *call, o *opts) {
	if len(o.rest) == 0 {
		c.act(Act{Op: Read})
		return
	}
	if !(o.rest[0].sureness == sure && isDigits(o.rest[0].text) || o.rest[0].sureness == number) {
		c.on(Create, o.rest[0])
	}
	rest := o.rest[1:]
	if text, ok := o.get("c", "command"); ok {
		c.joined([]word{text})
		return
	}
	if len(rest) == 2 && (rest[0].is("-c") || rest[0].is("--command")) {
		c.joined(rest[1:])
		return
	}
	if len(rest) > 0 {
		c.startBare(rest)
	}
}

func envRun(c *call, o *opts) {
	if d, ok := o.get("C", "chdir"); ok {
		c.inDir(d)
	}
	rest := o.rest
	if s, ok := o.get("S", "split-string"); ok {
		if s.sureness != sure || strings.ContainsAny(s.text, `\"'$#`) {
			c.unknown("the command that env gets is written in a way of its own")
			return
		}
		var ws []word
		for _, f := range strings.Fields(s.text) {
			ws = append(ws, lit(f))
		}
		rest = append(ws, rest...)
		if len(ws) > 0 && strings.HasPrefix(ws[0].text, "-") {
			c.unknown("the command that env gets is written in a way of its own")
			return
		}
	}
	if len(rest) > 0 && rest[0].is("-") {
		rest = rest[1:]
	}
	for len(rest) > 0 {
		name, v, eq := strings.Cut(rest[0].text, "=")
		if !eq || rest[0].many {
			break
		}
		if mattersToPrograms(name) || !isName(name) {
			c.act(Act{Op: Env, What: name})
		}
		if c.envs == nil {
			c.envs = map[string]word{}
		}
		x := rest[0]
		x.text = v
		c.envs[name] = x
		rest = rest[1:]
	}
	for _, u := range o.each("u", "unset") {
		if u.sureness != sure || mattersToPrograms(u.text) {
			c.act(Act{Op: Env, What: described(u)})
		}
	}
	if o.loose != "" && len(rest) == 0 {
		c.unknown(o.loose)
	}
	c.startBare(rest)
}

// inDir makes the rest of the call happen in another directory.
func (c *call) inDir(d word) {
	c.st = c.st.clone()
	if d.sureness != sure {
		c.st.cwd = nil
		return
	}
	c.st.cwd, _ = c.st.at(d.text)
}

func sudo(c *call, o *opts) {
	c.act(Act{Op: Root})
	for _, n := range []string{"D", "chdir"} {
		if d, ok := o.get(n); ok {
			c.inDir(d)
		}
	}
	if o.has("R", "e", "edit") {
		c.unknown("it opens files in an editor, or runs with another folder as the root of all")
	}
	rest := o.rest
	for len(rest) > 0 && rest[0].sureness == sure {
		name, _, eq := strings.Cut(rest[0].text, "=")
		if !eq || !isName(name) {
			break
		}
		if mattersToPrograms(name) {
			c.act(Act{Op: Env, What: name})
		}
		rest = rest[1:]
	}
	if o.loose != "" {
		c.unknown(o.loose)
	}
	if len(rest) == 0 {
		if o.has("s", "i", "shell", "login") {
			c.unknown("it starts a shell that gets its commands when it runs")
		}
		return
	}
	if o.has("s", "i", "shell", "login") {
		c.joined(rest)
		return
	}
	c.startBare(rest)
}

func su(c *call, o *opts) {
	c.act(Act{Op: Root})
	if o.loose != "" {
		c.unknown(o.loose)
	}
	if o.has("s", "shell") {
		c.unknown("another shell reads the text")
	}
	if text, ok := o.get("c", "command"); ok {
		c.joined([]word{text})
		return
	}
	if _, ok := o.get("u", "user"); ok && len(o.rest) > 0 {
		c.startBare(o.rest)
		return
	}
	c.unknown("it starts a shell that gets its commands when it runs")
}

func trace(c *call, o *opts) {
	if f, ok := o.get("o"); ok {
		if f.sureness != sure || strings.HasPrefix(f.text, "|") || strings.HasPrefix(f.text, "!") {
			c.unknown("it may give what it finds to another program")
		} else {
			c.on(Write, f)
		}
	}
	if o.has("p") {
		c.unknown("it looks into a running program")
	}
	if o.has("e") {
		for _, x := range o.each("e") {
			if x.sureness != sure || strings.Contains(x.text, "inject") || strings.Contains(x.text, "fault") {
				c.unknown("it may change what the program does")
			}
		}
	}
	c.startAfter(o, 0)
}

func xargs(c *call, o *opts) {
	if f, ok := o.get("a", "arg-file"); ok {
		c.reads(f)
	}
	rest := o.rest
	if len(rest) == 0 {
		c.act(Act{Op: Read})
		if o.loose != "" {
			c.unknown(o.loose)
		}
		return
	}
	more := word{sureness: unsure, many: true, why: "what xargs reads"}
	mark := ""
	for _, x := range o.list {
		switch x.name {
		case "I", "J", "R":
			mark = x.val.text
			if x.val.sureness != sure || x.name != "I" {
				c.unknown("where xargs puts what it reads is only known when it runs")
			}
		case "i", "replace":
			if mark = x.val.text; !x.has {
				mark = "{}"
			}
		}
	}
	in := c.in
	c.in = input{piped: true}
	if mark != "" {
		args := make([]word, len(rest))
		for i, a := range rest {
			if h, _, ok := strings.Cut(a.text, mark); ok {
				a = word{sureness: unsure, text: h, why: more.why}
			}
			args[i] = a
		}
		c.startBare(args)
		return
	}
	args := slices.Clone(rest)
	plain := !o.has("0", "null", "d", "delimiter", "E", "e", "eof", "a", "arg-file", "p", "interactive")
	switch {
	case in.given && plain && !strings.ContainsAny(in.text, "\\'\""):
		fs := strings.Fields(in.text)
		for _, f := range fs {
			args = append(args, lit(f))
		}
		if len(fs) > 0 && o.has("n", "max-args", "L", "l", "max-lines", "s") {
			args = append(slices.Clone(rest), more)
		}
	case in.find != nil && o.has("0", "null"):
		w := more
		w.why = foundBy
		c.in.find = in.find
		args = append(args, w)
	default:
		args = append(args, more)
	}
	c.startBare(args)
}

// foundBy marks the word that stands for what a find gives; see found.
const foundBy = "what find finds"
