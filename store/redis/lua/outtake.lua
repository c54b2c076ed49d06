#!lua
-- outtake: marks the head part as being sent by nonce and gives it.
-- KEYS, ARGV 1-4: prelude. ARGV: nonce takeover
-- Reply: {OK, {id, kind, turn, data, state, attempt, since, alone}}; NONE, ms until there may be one (0 = none waits)
local nonce, takeover = str(), num()

if call('EXISTS', key('o')) == 0 then return {'NONE', 0} end
if s('os') == 'sending' then
  if s('on') == nonce then return {'OK', taken()} end -- again as the first time: the reply was lost
  local wait = n('ot') + takeover - now
  if wait > 0 then return {'NONE', wait} end
end
if n('ow') > now then return {'NONE', n('ow') - now} end
take(nonce)
save()
return {'OK', taken()}
