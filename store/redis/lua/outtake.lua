#!lua
-- outtake: marks the head part as being sent by nonce and gives it.
-- KEYS, ARGV 1-4: prelude. ARGV: nonce takeover
-- Reply: {OK, {id, kind, turn, data, state, attempt, since, alone}}; NONE, ms until there may be one (0 = none waits)
local nonce, takeover = str(), num()

if call('EXISTS', key('o')) == 0 then return {'NONE', 0} end
local back = n('ot') - now
if back > 0 then -- the server's clock was set back: what is left to wait stays (F38)
  set('ot', now)
  if n('ow') > 0 then set('ow', n('ow') - back) end
  call('ZADD', P .. 'obx', n('ow') > 0 and n('ow') or now, LANE)
  save()
end
if s('os') == 'sending' and s('on') == nonce then return {'OK', taken()} end -- again as the first time: the reply was lost
local till = n('ow')
if s('os') ~= 'planned' then
  till = math.max(till, n('ot') + takeover)
elseif s('on') == nonce then
  till = 0 -- kept for it
end
if till > now then return {'NONE', till - now} end
take(nonce)
save()
return {'OK', taken()}
