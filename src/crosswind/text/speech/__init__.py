"""What a message of the agent is: an answer, a question or a refusal.

A message without a tool call either ends the episode (answer, refusal) or lets the scripted user reply (question).
`classify` decides by wording alone, always in the same way.  The rule, step by step:

1. READ.  Letter case, markdown, emoji and the kind of apostrophe do not matter.  Quoted text ("...", '...', `...`,
   fenced blocks and lines that start with ">") is somebody else's speech and is left out, unless the message is
   nothing but a quotation.  Of a long text only the first and the last 2000 characters count.  What is left is cut
   into sentences.
2. DROP COURTESIES.  "Anything else?", "Let me know if you need more", "Thanks!", "Does that help?", "Would you like
   more details?" count for nothing.
3. LOOK FOR REQUESTS to the user: a sentence with a question mark; one that asks without it ("please provide the id",
   "I need the date", "let me know which one", "awaiting your confirmation"); or one that says which detail is lacking
   ("the city is missing", "no date was given", "you haven't told me the name").  No request is
   - a rhetorical question: one that does not speak to the user (no "you", "I", "we") and is followed by its answer
     ("The cheapest? That is Alda."; but not "Which city? I will then look it up." or "How many? It must be a
     number."), one that "Yes" or "No" follows, or "You asked ...?";
   - something to do elsewhere ("please confirm at the desk", "please contact the shop").
4. LOOK FOR INABILITIES.
   - Plain: the task cannot, may not or will not be done, or was not done ("I can't book it", "cannot be cancelled",
     "booking not possible", "no tool can", "nothing is booked", "the policy forbids it", "I must decline", "REFUSED:
     ..."), a tool is gone that was needed ("share_file is out of service", unless "so I ..." leads on), or there is a
     cause that leaves nothing to be done ("the customer is barred", "the cover has lapsed").  That something was not
     paid or shipped tells how it stands, unless it follows from something or has a reason ("so it was not paid").
   - Full: no place is left ("no slots on 2031-01-26", "none of the slots has 5 seats", "nothing is free", "no table
     that day", "fully booked", "sold out"), except where it is only the reason for something else ("Alda, since Kairo
     is sold out") or a count ("two of the shows").
   - Not found: something could not be found, seen or told ("I couldn't find the order"), or there is none at all
     ("there is no castle in Dormomere", "the search returned nothing"), unless it is of a kind that one reports on
     ("there are no reviews with 5 stars", "no fee", "no conflicts").
   - Mild: something is unavailable, taken, expired or too little, together with regret ("sorry", "unfortunately") or
     with an offer of something else.  Without these it is a plain fact ("Dr. Lind is not available on Fridays").
     A message that says only that an account is blocked, access suspended or a file confidential is mild as well.
   An inability does not count when it was overcome ("at first", "the first attempt"), when it is a remark added to
   something else ("note that ...", "cannot be undone"), when it answers yes or no about a thing ("No, it can't be
   returned"; but "No, I can't" counts), when it is a value that is reported ("the status is: cannot be delivered"),
   when a step was to wait ("is staged, but was not launched", "not signed, as you asked"), or when it says what a
   result is the best of or goes over ("no earlier slot is free, so ...", "no order was cancelled, so the total ...").
5. LOOK FOR SUCCESS.
   - Told: the agent did it, or it worked ("I booked", "Held: R5561209", "Booking confirmed", "is now sent", "went
     through", "all set"), or there is a receipt ("Receipt: T6610923") or the number of what was done ("is prepared as
     TF1234567").
   - Stated: a thing is done, whoever did it ("the table is booked").
   A success that is denied ("nothing was booked"), conditional ("once it is confirmed") or a reason ("because it was
   sent") is none.
6. DECIDE, the first that fits:
   a. "I cannot do this: ..." is a REFUSAL whatever comes after the colon, if nothing is asked.
   b. What the agent did and then took back ("I cancelled it again", "everything is as it was before", "I couldn't sign
      it, so I recalled it"; "I rolled it back" and the like if something went wrong) makes a REFUSAL, unless a success
      is told after it; a QUESTION if a detail is asked for.
   c. An inability that a word of the user would lift ("I can't book without the date", "not until you confirm", "the
      address is missing") makes a QUESTION.
   d. Success outweighs an inability: go on with h.  Told success always does; stated success unless it tells how
      things stood before: in the same sentence as the inability without a "but" or "so" before it, with a word of the
      past ("ago", "already", "in May"), or with an inability that follows from it ("so I can't").
   e. Full, with no regret, no request and no word of the agent itself, and with the next free place named, is an
      ANSWER ("She has no free slots this week; the first free slot is on 12 June").
   f. Plain, full and mild make a REFUSAL, also when an offer or a wish for another choice comes with them ("No slot
      is left that day. Would you like another date?"): they say that what was asked for cannot be had.  Only a
      request to give, check or confirm a detail ("which", "when", "how many"), and not another one, makes a QUESTION,
      and not if it is full ("I can't open the order. Could you check the number?").
   g. Not found makes a QUESTION if anything is asked of the user but whether to do something else; an ANSWER if a
      "but" leads on to what was found, or a result was given before it ("The fee is 76 euros. I couldn't find the
      score."); else a REFUSAL.
   h. A request makes a QUESTION.  An offer of more after a success ("Would you like me to add it to your calendar?")
      is no request, unless it is about going ahead, or about the very thing of which success is only stated ("The
      visit is scheduled for May. Would you like me to cancel it?").
   i. Everything else, also the empty text, is an ANSWER.

`offers` tells whether all that a message asks (step 3) is whether to go ahead or to do something ("Shall I reserve
it?", "Do you want a breakdown?", "Please confirm."), with no detail and no choice asked for.  `classify` calls such a
message a question, also after information ("The earliest slot is at 09:00. Would you like me to book it?"), as it
cannot know whether the task ends there.  Its caller can: the session takes an offer for an answer if the request wants
nothing written, and otherwise has the user say yes.

English only.  It goes by words, so a refusal in unheard-of words is taken for an answer.
"""

from crosswind.text.speech.decision import Speech, classify, offers

__all__ = ["Speech", "classify", "offers"]
