package store

// The sentences an operator sees: what happened, what to do.
const (
	wordsScheme  = "store.url begins with %q; it must be sqlite:FILE, redis://, redis+sentinel:// or redis+cluster:// (rediss for TLS)"
	wordsNone    = "there is no store at %s; name the one to copy from as store.url does"
	wordsSame    = "FROM and TO are the same store; name another one to copy to"
	wordsDir     = "FROM and TO are in one directory, %s; a store has its directory for itself: give TO another one"
	wordsNoCopy  = "%s cannot be copied"
	wordsLive    = "FROM is in use: a gateway runs session %s; stop every gateway on it and try again when its lease has ended"
	wordsMoved   = "FROM changed while it was copied (%s); stop every gateway that uses it and run this again"
	wordsFull    = "TO (%s) is not empty; name an empty store, or empty that one first"
	wordsOther   = "TO holds an unfinished copy of another store (%s); finish that one, or empty TO first"
	wordsHalf    = "FROM holds an unfinished copy of %s; finish that one first: gateway store copy %[1]s FROM"
	wordsDiffers = "session %s is not the same in TO (%s); stop every gateway on both and run this again"
	wordsLaw     = "the counters of %s do not add up: accepted %d, consumed %d, steered %d, dropped %d, waiting %d"
	wordsCut     = "the copy is not whole yet (%d sessions are); run the same command again, it goes on from there"
)
