package judge

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// network are programs that reach other computers.
func network() map[string]*program {
	to := func(n int) func(*call, *opts) {
		return func(c *call, o *opts) {
			host := word{}
			if len(o.rest) > n {
				host = o.rest[n]
			}
			c.connect(host)
		}
	}
	return map[string]*program{
		"curl": {short: "sSLfvikIgGnpqRjJa#N0123456ZlOo:X:d:H:A:u:b:c:e:F:T:m:x:r:w:y:Y:z:C:D:Q:t:U:E:P:", is: exact, do: curl, long: "silent show-error location fail fail-with-body verbose include insecure head globoff get compressed create-dirs remote-name remote-header-name output= output-dir= request= data= data-raw= data-binary= data-urlencode= data-ascii= json= header= user-agent= user= cookie= cookie-jar= referer= form= form-string= upload-file= max-time= connect-timeout= proxy= range= write-out= retry= retry-delay= retry-max-time= retry-all-errors retry-connrefused url= http1.1 http2 http1.0 http3 ipv4 ipv6 tlsv1.2 tlsv1.3 tls-max= cacert= capath= cert= key= max-redirs= limit-rate= dump-header= progress-bar no-progress-meter no-buffer path-as-is location-trusted oauth2-bearer= basic digest negotiate ntlm anyauth noproxy= resolve= continue-at= remote-time remote-name-all post301 post302 post303 proto= proto-redir= max-filesize= parallel no-keepalive keepalive-time= styled-output no-styled-output trace-time fail-early url-query= etag-compare= etag-save= stderr= trace= trace-ascii= libcurl= hsts= alt-svc= connect-to= interface= unix-socket="},
		"wget": {short: "qvdcNSrkpmHLn?xl:i:O:P:o:a:U:t:T:w:Q:e:D:A:R:I:X:B:46", is: exact, do: wget, long: "quiet no-verbose verbose continue timestamping output-document= directory-prefix= output-file= append-output= user-agent= tries= timeout= wait= recursive level= mirror page-requisites convert-links no-parent no-check-certificate header= post-data= post-file= method= body-data= body-file= user= password= show-progress progress= no-clobber spider server-response content-disposition max-redirect= ca-certificate= load-cookies= save-cookies= no-cookies inet4-only inet6-only limit-rate= https-only adjust-extension no-directories no-host-directories cut-dirs= accept= reject= domains= span-hosts input-file= retry-connrefused waitretry= no-hsts no-proxy compression="},
		"ssh":  {short: "46AaCfGgKkMNnqsTtVvXxYyb:c:D:e:i:J:L:l:m:p:R:W:w:o:E:F:B:I:S:O:Q:P:", is: stops | exact, do: ssh},
		"scp":  {short: "346ABCOpqRrTvc:i:J:l:P:o:S:D:F:X:", is: exact, do: scp},
		"sftp": {is: free, do: reach(true)},
		"ftp":  {is: free, do: reach(true)},
		"nc":   {is: free, do: nc},
		"socat": {is: free, do: func(c *call, o *opts) {
			c.act(Act{Op: Connect})
			c.unknown("socat joins connections, files and programs in ways that are not followed here")
		}},
		"rsync": {short: "vqcarRubdlLkHpEAXogtDJOSnWxCyzhPi468e:f:M:T:B:", long: "verbose quiet checksum archive recursive relative update inplace append dirs links copy-links copy-unsafe-links safe-links hard-links perms executability chmod= acls xattrs owner group devices specials times omit-dir-times sparse dry-run whole-file one-file-system existing ignore-existing remove-source-files delete delete-before delete-during delete-delay delete-after delete-excluded force max-delete= max-size= min-size= partial partial-dir= prune-empty-dirs numeric-ids timeout= contimeout= ignore-times size-only modify-window= temp-dir= compare-dest= copy-dest= link-dest= compress compress-level= cvs-exclude filter= exclude= exclude-from= include= include-from= files-from= from0 progress stats human-readable itemize-changes out-format= log-file= bwlimit= ipv4 ipv6 backup backup-dir= suffix= info= mkpath no-perms no-owner no-group rsh= rsync-path=", is: exact, do: rsync},
		"ping":  {is: free, do: to(0)}, "ping6": {is: free, do: to(0)}, "traceroute": {is: free, do: to(0)}, "tracepath": {is: free, do: to(0)}, "mtr": {is: free, do: to(0)},
		"dig": {is: free, do: to(0)}, "nslookup": {is: free, do: to(0)}, "host": {is: free, do: to(0)}, "whois": {is: free, do: to(0)}, "getent": {is: free, do: to(1)},
		"nmap": {is: free, do: to(0)}, "http": {is: free, do: reach(false)}, "https": {is: free, do: reach(false)},
		"aria2c": {is: free, do: reach(true)}, "yt-dlp": {is: free, do: reach(true)}, "gh": {is: free, do: reach(true)}, "aws": {is: free, do: reach(true)},
	}
}

// reach is a program that connects and may do more.
func reach(more bool) func(*call, *opts) {
	return func(c *call, o *opts) {
		a := Act{Op: Connect}
		for _, w := range o.rest {
			if h, p := remoteHost(w.text); h != "" {
				a.Host, a.Port = h, p
				break
			}
		}
		c.act(a)
		if more || len(o.list) > 0 || o.bad != "" {
			c.act(Act{Op: Run, Program: c.name})
		}
	}
}

// connect notes a host as it stands there.
func (c *call) connect(w word) {
	a := Act{Op: Connect}
	if w.sureness == sure {
		a.Host = w.text
		if h, p := remoteHost(w.text); h != "" {
			a.Host, a.Port = h, p
		}
	}
	c.act(a)
}

// remoteHost takes host and port out of a URL or of user@host:path; "" for
// what names no other computer.
func remoteHost(s string) (string, int) {
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil || u.Scheme == "file" {
			return "", 0
		}
		port, _ := strconv.Atoi(u.Port())
		return u.Hostname(), port
	}
	if i := strings.IndexByte(s, ':'); i > 0 && !strings.Contains(s[:i], "/") {
		host := s[:i]
		return host[strings.LastIndexByte(host, '@')+1:], 0
	}
	return "", 0
}

// webURL notes a URL that curl or wget reads; they take a bare name for one.
func (c *call) webURL(w word) {
	switch {
	case w.sureness != sure:
		host := ""
		if _, rest, ok := strings.Cut(w.text, "://"); ok {
			if h, _, ok := strings.Cut(rest, "/"); ok {
				host = h[strings.LastIndexByte(h, '@')+1:]
			}
		}
		c.act(Act{Op: Connect, Host: host})
		if w.many {
			c.unknown("which options it gets: " + loosely(w) + " decides them")
		}
	case strings.HasPrefix(strings.ToLower(w.text), "file:"):
		c.act(Act{Op: Read})
		if u, err := url.Parse(w.text); err == nil {
			c.reads(lit(u.Path))
		}
	case strings.Contains(w.text, "://"):
		h, p := remoteHost(w.text)
		c.act(Act{Op: Connect, Host: h, Port: p})
	default:
		h, _, _ := strings.Cut(w.text, "/")
		h, port, _ := strings.Cut(h[strings.LastIndexByte(h, '@')+1:], ":")
		p, _ := strconv.Atoi(port)
		c.act(Act{Op: Connect, Host: h, Port: p})
	}
}

func curl(c *call, o *opts) {
	urls := append(slices.Clone(o.rest), o.each("url")...)
	dir := ""
	if d, ok := o.get("output-dir"); ok {
		if dir = d.text + "/"; d.sureness != sure {
			c.unknown("where it keeps what it gets: " + loosely(d) + " decides it")
		}
	}
	for _, u := range urls {
		c.webURL(u)
		if !o.has("O", "remote-name", "remote-name-all") {
			continue
		}
		name := ""
		if p, err := url.Parse(u.text); err == nil && u.sureness == sure {
			name = path.Base(p.Path)
		}
		if name == "" || name == "/" || name == "." || strings.ContainsAny(u.text, "{}[]") || o.has("J", "remote-header-name") {
			c.unknown("the name under which it keeps what it gets is only known when it runs")
			continue
		}
		c.on(Write, lit(dir+name))
	}
	for _, f := range o.each("o", "output") {
		if f.sureness == sure && f.text != "-" && !strings.HasPrefix(f.text, "/dev/") {
			f.text = dir + f.text
			if strings.ContainsAny(f.text, "#") {
				f = unknown("the address")
			}
		}
		if !f.is("-") {
			c.on(Write, f)
		}
	}
	for _, f := range o.each("c", "cookie-jar", "D", "dump-header", "etag-save", "stderr", "trace", "trace-ascii", "libcurl", "hsts", "alt-svc") {
		if !f.is("-") {
			c.on(Write, f)
		}
	}
	for _, f := range o.each("T", "upload-file") {
		c.reads(f)
	}
	for _, d := range o.each("d", "data", "data-binary", "data-urlencode", "F", "form", "json") {
		if _, f, ok := strings.Cut(d.text, "@"); ok && d.sureness == sure {
			c.reads(lit(f))
		}
	}
	for _, x := range o.each("x", "proxy") {
		c.connect(x)
	}
	for _, w := range o.each("w", "write-out") {
		if w.sureness != sure || strings.Contains(w.text, "output{") || strings.HasPrefix(w.text, "@") {
			c.unknown("what it writes is only known when it runs")
		}
	}
	if o.has("Q", "quote") {
		c.unknown("it gives commands to the other computer")
	}
}

func wget(c *call, o *opts) {
	dir := ""
	if d, ok := o.get("P", "directory-prefix"); ok {
		if dir = d.text + "/"; d.sureness != sure {
			c.unknown("where it keeps what it gets: " + loosely(d) + " decides it")
		}
	}
	if o.has("e", "execute") {
		c.unknown("it is given settings of its own")
	}
	doc, hasDoc := o.get("O", "output-document")
	for _, u := range o.rest {
		c.webURL(u)
		if hasDoc || o.has("spider") {
			continue
		}
		name := "index.html"
		if p, err := url.Parse(u.text); err == nil && u.sureness == sure {
			if b := path.Base(p.Path); b != "." && b != "/" {
				name = b
			}
			if p.RawQuery != "" {
				name += "?" + p.RawQuery
			}
		} else {
			c.unknown("the name under which it keeps what it gets is only known when it runs")
			continue
		}
		c.on(Write, lit(dir+name))
	}
	if hasDoc && !doc.is("-") {
		c.on(Write, doc)
	}
	for _, f := range o.each("o", "output-file", "a", "append-output", "save-cookies") {
		c.on(Write, f)
	}
	if o.has("r", "recursive", "m", "mirror", "p", "page-requisites", "i", "input-file", "content-disposition", "x") {
		c.unknown("which files it writes is only known when it runs")
	}
}

// sshSettings are settings of ssh that run nothing.
var sshSettings = []string{"stricthostkeychecking", "connecttimeout", "batchmode", "userknownhostsfile", "identitiesonly", "identityfile", "port", "user", "loglevel", "serveraliveinterval", "serveralivecountmax", "passwordauthentication", "compression"}

func (c *call) sshOptions(o *opts) {
	for _, s := range o.each("o") {
		name, _, _ := strings.Cut(strings.ToLower(s.text), "=")
		if s.sureness != sure || !slices.Contains(sshSettings, strings.TrimSpace(name)) {
			c.unknown("the setting " + described(s) + " may make ssh run a program here")
		}
	}
	if o.has("F", "S", "I", "J", "D", "L", "R", "w", "W") {
		c.unknown("it opens ways into this computer or runs a program here")
	}
}

func ssh(c *call, o *opts) {
	if o.has("V", "Q") {
		c.act(Act{Op: Read})
		return
	}
	c.sshOptions(o)
	if f, ok := o.get("E"); ok {
		c.on(Append, f)
	}
	if len(o.rest) == 0 {
		return
	}
	a := Act{Op: Connect}
	if h := o.rest[0]; h.sureness == sure {
		if a.Host, a.Port = remoteHost(h.text); a.Host == "" {
			a.Host = h.text[strings.LastIndexByte(h.text, '@')+1:]
		}
	}
	if p, ok := o.get("p"); ok && p.sureness == sure {
		a.Port, _ = strconv.Atoi(p.text)
	}
	c.act(a)
	c.unknown("what it does happens on the other computer")
}

func scp(c *call, o *opts) {
	c.sshOptions(o)
	if len(o.rest) < 2 {
		return
	}
	to := o.rest[len(o.rest)-1]
	for _, w := range o.rest {
		if h, _ := remoteHost(w.text); h != "" || w.sureness != sure && w.sureness != pattern {
			c.act(Act{Op: Connect, Host: h})
		}
	}
	c.landing(to, o.rest[:len(o.rest)-1])
}

// landing notes what is copied to a place that may be on another computer.
func (c *call) landing(to word, from []word) {
	if h, _ := remoteHost(to.text); h != "" {
		c.reads(from...)
		c.unknown("what it replaces is on the other computer")
		return
	}
	ps, ok := c.names(opWhat(Copy), to)
	if !ok || len(ps) == 0 {
		return
	}
	a := Act{Op: Copy, Recursive: true, Replaces: true, Into: &ps[0]}
	for _, w := range from {
		if h, _ := remoteHost(w.text); h != "" {
			continue
		}
		f, ok := c.names("what is copied", w)
		if !ok {
			return
		}
		a.From = append(a.From, f...)
	}
	if len(a.From) < len(from) {
		c.unknown("the names of what it brings are only known when it runs")
	}
	c.act(a)
}

func rsync(c *call, o *opts) {
	if o.has("e", "M", "rsh", "rsync-path") {
		c.unknown("it runs a program to reach the other side")
	}
	if f, ok := o.get("log-file"); ok {
		c.on(Append, f)
	}
	if o.has("files-from", "b", "backup", "backup-dir", "T", "temp-dir", "R", "relative", "D", "devices") && !o.has("n", "dry-run") && o.has("files-from", "b", "backup", "backup-dir", "T", "temp-dir") {
		c.unknown("where the files go is not clear")
	}
	if len(o.rest) < 2 {
		c.reads(o.rest...)
		return
	}
	to, from := o.rest[len(o.rest)-1], o.rest[:len(o.rest)-1]
	for _, w := range o.rest {
		if h, _ := remoteHost(w.text); h != "" {
			c.act(Act{Op: Connect, Host: h})
		}
	}
	if to.sureness == pattern || c.many(o.rest) {
		c.unknown("where the files go is only known when it runs")
		return
	}
	if o.has("n", "dry-run") {
		c.reads(from...)
		return
	}
	c.landing(to, from)
	if o.has("delete", "delete-before", "delete-during", "delete-delay", "delete-after", "delete-excluded") {
		if h, _ := remoteHost(to.text); h == "" {
			if ps, ok := c.names(opWhat(Delete), to); ok {
				c.act(Act{Op: Delete, Paths: ps, Recursive: true, Find: &Find{MinDepth: 1, MaxDepth: -1, Others: []string{"that are not in the source"}}})
			}
		}
	}
	if o.has("remove-source-files") {
		if ps, ok := c.names(opWhat(Delete), from...); ok {
			c.act(Act{Op: Delete, Paths: ps, Recursive: true})
		}
	}
}

func nc(c *call, o *opts) {
	a := Act{Op: Connect}
	var rest []string
	for _, w := range c.args[1:] {
		switch {
		case w.sureness != sure:
			c.unknown("which options it gets: " + loosely(w) + " decides them")
		case strings.HasPrefix(w.text, "-"):
			if strings.ContainsAny(w.text, "eclUkox") {
				c.unknown("it waits for connections, or gives one to a program")
			}
		default:
			rest = append(rest, w.text)
		}
	}
	if len(rest) > 0 {
		a.Host = rest[0]
	}
	if len(rest) > 1 {
		a.Port, _ = strconv.Atoi(rest[1])
	}
	c.act(a)
}
