package sqlite

// The sentences an operator sees: what happened, what to do.
const (
	wordsHeld    = "another gateway (pid %s) uses %s; stop it or set store.url"
	wordsUnknown = "unknown" // the pid of a lock whose file is empty
	wordsGone    = "%s was deleted or replaced while the gateway runs: what is written now is lost; stop and put it back"
	wordsDamaged = "%s is damaged (%s); stop, keep the file, restore a backup or set store.url"
	wordsForeign = "%s is no store of this gateway; set store.url to another file"
	wordsNewer   = "%s was written by a newer gateway (schema %d, this one knows %d); update the gateway"
	wordsNoPath  = "the store has no file name; set store.url to sqlite:PATH"
	wordsBackup  = "%s exists already; name a new file for the backup"
	wordsClosed  = "the store is closed"
)
