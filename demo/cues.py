"""What the scripted reader knows: cue phrases for each field, and words that are no misspelt cues.

Owns word lists alone, written for the job, not taken from the grammar: a reader copes with unseen texts.
`a|b` are alternatives of one word, a phrase is words in a row. Apostrophes are dropped: can't reads cant.
"""

CATEGORY: dict[str, tuple[str, ...]] = {
    "billing": (
        "charged|billed|debited|overcharged", "charge|debit of|on|appeared", "monthly fee", "my|wrong bill",
        "on my bill", "from my bank account", "wrong amount", "unknown|unexplained|odd charge",
        "bank statement",
    ),
    "refund": ("refund|refunded|refunds|reimburse|reimbursed", "money back", "pay me back"),
    "cancel": (
        "cancel|cancelling|terminate", "end|stop my|the|our|this subscription|membership|plan|contract",
        "end my contract", "no longer want", "dont want to continue", "please end it", "unsubscribe",
    ),
    "upgrade": (
        "upgrade|upgrading", "bigger|larger|higher|next plan", "premium|pro|family|business plan|tier",
        "more storage|seats|users", "move|switch me to",
    ),
    "invoice": ("invoice|invoices|receipt|receipts", "vat number"),
    "payment": (
        "declined", "payment|payments", "checkout", "cant|cannot pay", "my card is|was|gets",
        "rejects|refuses my",
    ),
    "discount": (
        "promo code", "voucher|vouchers|coupon|coupons", "discount|discounts", "gift card", "redeem",
    ),
    "delivery": (
        "parcel|package|shipment", "tracking", "courier", "delivered|delivery|shipped|shipping",
        "has not arrived", "not arrived", "hasnt arrived", "on its way",
    ),
    "return": (
        "return|returning", "send it|them|this back", "send things back", "send back", "exchange|swap",
    ),
    "damaged": (
        "cracked|smashed|scratched|dented", "with a dent", "arrived|came broken", "with a broken",
        "in pieces", "damaged",
    ),
    "repair": (
        "stopped working", "died", "wont|doesnt|not turn|switch on", "stays|is dead",
        "repair|repairs|repaired", "warranty",
    ),
    "login": (
        "log|sign in|into", "login", "logged|signed out", "logs|throws me out|back", "signing|logging in",
    ),
    "password": ("password|passwords", "reset link|mail"),
    "profile": (
        "my|new|the|old email|postal|street|phone|last|first address|number|name", "email address",
        "moved house", "got married", "my profile", "new address", "phone number", "postal|street address",
        "last|first name",
    ),
    "setup": (
        "set up", "setup", "install|installed|installing|installation", "pair|pairing", "qr code",
        "activation",
    ),
    "crash": ("crash|crashes|crashing|crashed", "freeze|freezes|freezing|frozen", "hangs", "black screen"),
    "network": ("offline", "connection", "wifi", "signal", "disconnects|disconnected", "router"),
    "privacy": ("delete", "personal data", "copy of", "data about", "gdpr", "privacy", "my data", "all data"),
    "feature": (
        "dark|night|quiet|holiday mode", "suggestion|suggestions", "an|one idea", "idea", "could you add",
        "could you please add", "please add", "would be great|nice", "wish the|your|my|it", "add dark|a",
    ),
    "security": (
        "hacked|hacker", "somebody|someone hacked|from|used|broke|got", "stranger",
        "strange user|mail|device", "unknown device", "suspicious", "phishing", "scam",
    ),
}  # fmt: skip

PRODUCT: dict[str, tuple[str, ...]] = {
    "app": ("app|apps",),
    "web": ("website|webpage|site|portal|browser", "web page"),
    "hub": ("hub", "base station"),
    "camera": ("camera|cameras|cam|cams|doorbell",),
}

LOW: tuple[str, ...] = (
    "no rush|hurry", "not urgent", "take your time", "can wait", "low priority", "find the time",
    "get round to", "quiet day", "just asking|curious", "when you have time",
)  # fmt: skip

HIGH: tuple[str, ...] = (
    "urgent|urgently", "soon as possible", "asap", "immediately", "right now", "at once", "emergency",
    "hurry", "cant wait", "top priority", "without delay", "minute counts",
)  # fmt: skip

DEADLINE: tuple[str, ...] = (
    "tonight", "tomorrow", "in two|three|four|five|2|3|4|5 hours", "in half an hour", "in an|one hour",
    "this afternoon|evening", "today at", "at midnight",
)  # fmt: skip

PERSON: tuple[str, ...] = (
    "human", "real person", "manager", "supervisor", "agent", "call|phone|ring me", "someone in charge",
    "no bots", "chatbot", "from your team",
)  # fmt: skip

THREAT: tuple[str, ...] = (
    "lawyer|lawyers|solicitor|solicitors", "ombudsman", "regulator|regulators", "consumer agency", "court",
    "legal action", "sue|suing", "small claims",
)  # fmt: skip

RENEWAL: tuple[str, ...] = ("renew|renews|renewed|renewal|autorenewed",)

# Everyday words one slip away from a cue.
COMMON: tuple[str, ...] = (
    "change", "chance", "larger", "charge", "place", "phone", "other", "sound", "sounds", "their", "there",
    "these", "which", "while", "where", "write", "right", "night", "might", "light", "after", "later",
    "alert", "alerts", "mails", "named", "moved", "shows", "house", "hours", "check", "every", "never",
    "store", "storage", "start", "years", "noise", "voice", "until", "total", "about", "above", "could",
    "would", "should", "great", "month", "thing", "things", "think", "thanks", "still", "since", "people",
    "please", "reply", "really", "rather", "quite", "money", "often", "order", "orders", "answer", "write",
    "weeks", "clock", "sense", "hello", "heard", "reach", "heart", "taken", "token", "point", "print",
    "count", "event", "board", "broad", "clean", "clear", "paper", "extra", "model", "mother", "father",
    "turns", "signs", "stops", "sends", "rings", "calls", "agree", "agreed",
)  # fmt: skip
