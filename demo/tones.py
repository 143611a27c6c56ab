"""How customers write: hurry, wishes for a person, names, greetings, noise.

Owns the wordings around the main problem. Implied deadlines, threats and the renewal clause are the families
on which the scripted teacher is blind (see `teacher_rules`); nothing here knows that.
"""

HIGH: tuple[str, ...] = (
    "this is [urgent|really urgent|very urgent]",
    "please [fix|solve|sort out] this as soon as possible",
    "I need [an answer|this fixed|help] [immediately|right now|at once]",
    "it is an emergency",
    "[please hurry|hurry please], I can't wait",
    "please handle this [ASAP|with top priority|without delay]",
    "[every|each] minute counts",
)

IMPLICIT_EVENT: tuple[str, ...] = (
    "we [fly out|leave for {city}|go on holiday]",
    "my guests [arrive|check in|come]",
    "our shop [opens|reopens]",
    "the new tenants move in",
    "I [board my plane|start my night shift|go into hospital]",
    "the [landlord|fire inspector|surveyor] comes",
    "our [wedding|event|open day] [starts|begins]",
    "I have to [present this|hand this in|leave the house]",
)

IMPLICIT_TIME: tuple[str, ...] = (
    "tomorrow [morning|at {n}|at noon]",
    "tonight",
    "in [two|three|four] hours",
    "this [afternoon|evening]",
)

LOW: tuple[str, ...] = (
    "[no rush|no hurry|there is no rush], [really|I can wait|take your time]",
    "[whenever|when] you [find the time|get round to it|have a quiet day]",
    "it is not urgent [at all|for me|]",
    "this can wait [a week|until next month|]",
    "it has low priority [for me|]",
    "just [asking|curious], [no rush|no hurry|take your time]",
)

NEUTRAL: tuple[str, ...] = (
    "please [advise|let me know|tell me what to do]",
    "[thanks for|looking forward to] your [answer|reply|help]",
    "I [tried it three times|looked everywhere|read the help pages] already",
    "what [can I|should I|do I have to] do",
    "I hope you can help",
)

PERSON: tuple[str, ...] = (
    "I want to [speak|talk] to [a human|a real person|a manager|your supervisor]",
    "please [call me|phone me|ring me] back on {phone}",
    "can [a real person|a human|someone from your team] call me",
    "[no bots|no chatbot|no automatic answers] please, [a human|a real person]",
    "put me through to [a manager|an agent|a supervisor]",
    "let me [talk|speak] to [someone in charge|a real person|an agent]",
)

THREAT: tuple[str, ...] = (
    "[otherwise|or else] my lawyer will [write to you|be in touch|take over]",
    "I will [report you to|inform|write to] the [ombudsman|regulator]",
    "next [stop|step] is [court|the ombudsman|my lawyer]",
    "my lawyer [has a copy of this|is reading along|knows about it]",
    "the [regulator|ombudsman] will [hear about this|hear from me]",
    "see you in court",
)

GRUMBLE: tuple[str, ...] = (
    "I am [quite|rather|really] disappointed",
    "this is [annoying|so frustrating|no fun]",
    "not what I expect [from you|after {n} years]",
    "[honestly|frankly], I am fed up",
)

RENEWAL: tuple[str, ...] = (
    "it renewed [by itself|on {day}|without asking]",
    "the plan was [renewed|auto-renewed] [in {month}|on {day}|without my say]",
    "after the automatic renewal [in {month}|on {day}|]",
    "you renewed my [plan|membership] [on {day}|without asking|in {month}]",
)

GREETINGS: tuple[str, ...] = (
    "Hi", "Hello", "Hello there", "Good morning", "Dear support", "Hi team", "Hey", "Good evening",
    "Hello everyone", "Dear Sir or Madam", "Hola", "Bonjour", "Moin", "Ciao", "Guten Tag", "Hej", "Namaste",
)  # fmt: skip

PREAMBLES: tuple[str, ...] = (
    "I have been a customer for {n} years",
    "sorry for my English",
    "I hope this reaches the right desk",
    "I am writing for my [mother|father|neighbour]",
    "second message about this",
    "I like what you make, but",
    "short question",
)

STORIES: tuple[str, ...] = (
    "I switched it off and on [twice|{n} times] and asked a friend who knows about such things",
    "my [neighbour|sister|uncle] in {city} has the same and never had any trouble with it",
    "I spent the whole of {day} on this and the dog has not been out since",
    "I [read|looked] through the manual from front to back, which is not long, I must say",
    "we bought all of it [last year|in {month}] because {name} from next door told us how good it was",
    "as I am [not good with|rather new to] such things, please explain it as you would to a child",
)

TAILS: tuple[str, ...] = ("this is about {p}", "it concerns {p}", "I mean {p}", "I use {p}", "we have {p}")

ALSO: tuple[str, ...] = (
    "also", "and another thing:", "by the way,", "besides,", "while I am at it,", "second,",
)  # fmt: skip

SIGN_OFFS: tuple[str, ...] = (
    "Thanks, {name}", "Regards, {name}", "Best, {name}", "{name}", "Cheers, {name}", "Kind regards, {name}",
    "Thank you!", "Thx", "Many thanks, {name}", "Yours, {name}, {city}", "sent from my phone",
)  # fmt: skip

NAMES: tuple[str, ...] = (
    "Agnieszka", "Bjørn", "Chidi", "Đặng Linh", "Eilidh", "Fatima", "Giuseppe", "Håkon", "Ines", "João",
    "Kenji", "Lakshmi", "Müge", "Nguyen", "Oksana", "Parisa", "Quentin", "Ramón", "Siobhán", "Tomáš", "Ülkü",
    "Valentina", "Wanjiru", "Xiomara", "Yusuf", "Zsófia", "Ahmed", "Mei Lin", "Priya", "Søren", "Thandiwe",
    "Jörg Weiß", "Anaïs", "Dragan", "Kwame", "Ayşe", "Ewa Nowak", "Hiroshi", "Noor", "Sean O'Neill", "Rui",
    "Olga", "Marta", "Ben", "Tove",
)  # fmt: skip

CITIES: tuple[str, ...] = (
    "Kraków", "Lagos", "Porto", "Bergen", "Osaka", "Lyon", "Brno", "Graz", "Leeds", "Izmir", "Pune", "Quito",
    "Cork", "Malmö", "Ghent", "Turin", "Hanoi", "Perth", "Tartu", "Zürich",
)  # fmt: skip

MONTHS: tuple[str, ...] = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip

DAYS: tuple[str, ...] = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "the weekend",
)  # fmt: skip
