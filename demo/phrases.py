"""What customers write about: the main problem of a ticket, by category.

Owns the templates; knows nothing of labels other than the category and of how a ticket is put together.
`[a|b|]` is one of several wordings, `{slot}` is filled by the grammar, `{p}` is a product with its article.
`on` names a product, `plain` names none, `short` are tickets of a few words (`{p}` where a product is meant).
"""

from typing import NamedTuple

HARDWARE = ("hub", "camera")
SOFTWARE = ("app", "web")
ANY = HARDWARE + SOFTWARE


class Topic(NamedTuple):
    """Wordings of one category; `fits` are the products that its `on` templates make sense with."""

    fits: tuple[str, ...]
    on: tuple[str, ...]
    plain: tuple[str, ...]
    short: tuple[str, ...]


MONEY: dict[str, Topic] = {
    "billing": Topic(
        ("hub", "camera", "app"),
        (
            "I was [charged|billed] [twice|two times|double] for {p} [this month|in {month}|again]",
            "you [charged|billed|debited] me {amount} for {p} [instead of|but we agreed on|not] {amount}",
            "there is a [charge|debit] of {amount} for {p} that I [do not know|can't explain]",
            "the monthly fee for {p} [went up|jumped|rose] to {amount} without [warning|any notice|a word]",
        ),
        (
            "I have been [charged|billed] [twice|two times] for [{month}|the same month|one order]",
            "my bill [shows|says|is] {amount} [instead of|but should be|rather than] {amount}",
            "I was overcharged [by {amount}|in {month}|on order {order}]",
            "an [unknown|unexplained|odd] charge of {amount} [is|appeared|shows up] on my bank statement",
            "you [took|debited|withdrew] {amount} from my bank account on {day}, [why|what for]",
        ),
        (
            "[charged|billed] twice for {p}",
            "[wrong amount|mistake] on my bill",
            "overcharged [again|in {month}]",
        ),
    ),
    "refund": Topic(
        ("hub", "camera", "app"),
        (
            "I [want|would like|need] my money back for {p}",
            "please [refund|reimburse] [me for {p}|{p}|the {amount} for {p}]",
            "[where is|when do I get|I still wait for] the refund for {p} [from order {order}|of {amount}]",
        ),
        (
            "I [want|would like] my money back for order {order}",
            "please [refund|reimburse] the {amount} [from {day}|for {month}|for order {order}]",
            "[how long does|when will] my refund [take|arrive|be paid]",
            "the refund of {amount} [has not reached me|never came|is still not there]",
            "I [demand|request|am asking for] a full refund of {amount}",
        ),
        ("refund for {p} please", "[money back please|I want my money back]", "where is my refund"),
    ),
    "cancel": Topic(
        ("hub", "camera", "app"),
        (
            "please cancel [my subscription for {p}|the plan for {p}|the contract on {p}]",
            "I [want|wish|would like] to cancel {p} [subscription|plan] [at the end of|from] {month}",
            "how do I [end|terminate|stop] [my subscription|the plan|the contract] for {p}",
        ),
        (
            "please cancel my [subscription|membership|plan|contract] [at the end of|by|in] {month}",
            "I [want|wish|would like] to [terminate|end|cancel] my [contract|membership|subscription]",
            "[where|how] can I cancel [my plan|the subscription|my membership]",
            "I [no longer want|don't want to continue] the subscription, [please end it|stop it|cancel it]",
        ),
        (
            "cancel {p} subscription",
            "cancel my [plan|membership|contract]",
            "[please end|terminate] my contract",
        ),
    ),
    "upgrade": Topic(
        ANY,
        (
            "I [want|would like] to upgrade {p} to the [family|premium|pro|business] plan",
            "can I [switch|move] {p} to a [bigger|larger|higher] plan",
            "how much [more is|does it cost to have] the [premium|pro|family] plan for {p}",
        ),
        (
            "I [want|would like|plan] to upgrade to the [family|premium|pro|business] plan",
            "can you [move|switch] me to the [bigger|larger|next] plan [from {month}|next month]",
            "we need [more storage|more seats|more users] than our plan has, how do we upgrade",
            "what [would|does] the [premium|family|pro] tier cost [me|us] on top",
        ),
        ("upgrade {p} please", "upgrade to [premium|family|pro]", "[bigger|larger] plan please"),
    ),
    "invoice": Topic(
        HARDWARE,
        (
            "[can you send|please send|I need] the invoice for {p} [from {month}|again|as PDF]",
            "the invoice for {p} [has the wrong company name|lacks our VAT number|shows no VAT]",
            "I [lost|can't find|never got] the receipt for {p}",
        ),
        (
            "[please send|I need|could I get] [an invoice|a receipt|the invoice] for order {order}",
            "our VAT number is missing on the [invoice|receipt] [from|of] {month}",
            "my [accountant|boss] needs the [invoice|receipts] [for {month}|of last year|for order {order}]",
            "the invoice [came|was issued] in the wrong [company name|currency|name]",
        ),
        (
            "invoice for {p} please",
            "[invoice for {month}|receipt for order {order}]",
            "[need|where is] my invoice",
        ),
    ),
    "payment": Topic(
        ("hub", "camera", "app"),
        (
            "my [card|credit card|Visa] is declined when I [order|buy|pay for] {p}",
            "the payment for {p} [fails|does not go through|is rejected] [every time|again|since {day}]",
            "I [can't|cannot] pay for {p} with [PayPal|my credit card|bank transfer]",
        ),
        (
            "my [card|credit card|Mastercard] [gets|was|is] declined [at checkout|again|on every try]",
            "the payment [fails|will not go through|is rejected] with error {code}",
            "I [can't|cannot] pay order {order} with [PayPal|my card|Apple Pay]",
            "checkout [rejects|refuses] my [card|IBAN|credit card] [since {day}|for no reason]",
        ),
        ("payment for {p} fails", "card declined [again|at checkout]", "[payment not possible|cannot pay]"),
    ),
    "discount": Topic(
        HARDWARE,
        (
            "the [promo code|voucher|coupon] {code} does not work for {p}",
            "is there a [student|loyalty|family] discount on {p}",
            "I forgot to use my [voucher|coupon|gift card] when I bought {p}",
        ),
        (
            "my [promo code|voucher|coupon] {code} [is not accepted|shows as expired|does nothing]",
            "[do you have|is there] a discount for [students|seniors|teachers|two orders]",
            "the [ten|twenty|fifteen] percent discount from your newsletter [was not applied|is missing]",
            "how do I [redeem|use] [a gift card|the voucher|my coupon] on order {order}",
        ),
        ("any discount on {p}?", "[voucher|coupon] {code} invalid", "[student|senior] discount?"),
    ),
}

PARCELS: dict[str, Topic] = {
    "delivery": Topic(
        HARDWARE,
        (
            "[where is|I still wait for] the parcel with {p}, [ordered on {day}|order {order}]",
            "{p} [has not arrived|was never delivered] [since {day}|although tracking says so|yet]",
            "the courier left {p} [with nobody|at the wrong house|in the rain] on {day}",
        ),
        (
            "my [parcel|package|shipment] [has not arrived|is late|is lost] [since {day}|for a week|again]",
            "tracking for order {order} [has not moved|shows nothing|is stuck] since {day}",
            "the courier [says he rang|never came|left a note] on {day}",
            "when will order {order} be [delivered|shipped]",
        ),
        (
            "where is {p}? not delivered",
            "parcel [late|lost|not here]",
            "order {order} not [delivered|shipped]",
        ),
    ),
    "return": Topic(
        HARDWARE,
        (
            "I [want|would like|need] to [return|send back] {p} [I got on {day}|from order {order}|unused]",
            "please send me a return label for {p}",
            "can I [exchange|swap] {p} for [the white one|another colour|the newer model]",
        ),
        (
            "I [want|would like] to [return|send back] [order {order}|what I bought on {day}]",
            "[where do I find|please mail me|I need] the return label for order {order}",
            "can I [exchange|swap] it for [the black one|another colour|the smaller model]",
            "[what is|how long is] the [return period|time to send things back]",
        ),
        ("return {p}", "return label [please|for order {order}]", "[how to|can I] return it"),
    ),
    "damaged": Topic(
        HARDWARE,
        (
            "{p} arrived [broken|cracked|with a dent|scratched]",
            "I [opened|unpacked] the box and {p} was [cracked|smashed|scratched|dented]",
            "{p} came with a [cracked|broken|scratched] [housing|lens|cover|foot]",
        ),
        (
            "order {order} arrived [broken|smashed|cracked]",
            "the [item|device|thing] came [cracked|scratched|dented|in pieces] [out of the box|on {day}]",
            "when I unpacked order {order} [one corner|the glass|the cover] was [smashed|cracked|dented]",
        ),
        ("{p} arrived [broken|cracked]", "arrived [smashed|in pieces]", "[cracked|dented] out of the box"),
    ),
    "repair": Topic(
        HARDWARE,
        (
            "{p} [stopped working|died] after {n} months, [is that under warranty|who repairs it]",
            "{p} [won't turn on|does not switch on|stays dead] any more [since {day}|after {n} months]",
            "how do I get {p} repaired [under warranty|after {n} months|at your workshop]",
        ),
        (
            "the device [died|stopped working] after {n} months, is it [under warranty|a warranty case]",
            "it [won't turn on|will not switch on] any more [since {day}|after {n} months of use]",
            "how long [does a repair take|is the warranty], [mine died|it stopped working] on {day}",
        ),
        ("{p} is dead", "{p} won't turn on", "[warranty repair|repair under warranty]?"),
    ),
}

USE: dict[str, Topic] = {
    "login": Topic(
        SOFTWARE,
        (
            "I [can't|cannot] [log in to|sign in to|log into] {p} [since {day}|any more|with error {code}]",
            "{p} [logs me out|throws me back to the login screen] [every hour|all the time|since {day}]",
            "the login [on|of|in] {p} [only spins|shows error {code}|does nothing]",
        ),
        (
            "I [can't|cannot] [log in|sign in] [since {day}|any more|from my new phone]",
            "I am [logged out|signed out] [every few minutes|all the time|after each click]",
            "every login ends with error {code}",
            "signing in [takes forever|fails|does not work] [since {day}|again]",
        ),
        ("login to {p} broken", "[can't|cannot] [log in|sign in]", "login error {code}"),
    ),
    "password": Topic(
        SOFTWARE,
        (
            "the password reset [in|on|of] {p} [sends no mail|does nothing|ends in error {code}]",
            "I forgot my password for {p} [and the reset mail never comes|and need a new one|again]",
            "{p} [says my password is too weak|won't take my new password|refuses the old password]",
        ),
        (
            "I [forgot|lost] my password and [the reset mail never comes|need a new one]",
            "the reset link [is expired|is dead|shows error {code}] [whenever I click|again|after a minute]",
            "how do I change my password [after {n} years|from my phone]",
            "my new password [is not accepted|is refused] [every time|since {day}]",
        ),
        ("forgot password for {p}", "[forgot|lost] my password", "[password reset|reset link] dead"),
    ),
    "profile": Topic(
        SOFTWARE,
        (
            "I [can't|cannot] change my [email address|phone number|last name] in {p}",
            "{p} still shows my old [street address|last name|phone number]",
            "where in {p} do I [update|change] my [postal address|phone number|email address]",
        ),
        (
            "please change my email address to {email}",
            "I [moved house|got married] and need to update my [postal address|last name|street address]",
            "my [last name|first name] is [misspelt|wrong] in my profile, it is {name}",
            "please [correct|update] the phone number in my profile, [it is old|mine ends in {n}{n}]",
        ),
        ("change email address in {p}", "new [postal|email] address", "[change|update] my phone number"),
    ),
    "setup": Topic(
        HARDWARE,
        (
            "how do I [set up|install|pair] {p} [in a flat|on the wall|with a second phone]",
            "pairing {p} [stops at step {n}|never finishes|fails at {n} percent]",
            "the [setup guide|setup wizard|QR code] for {p} [is unreadable|stops at step {n}|makes no sense]",
        ),
        (
            "the setup [stops at step {n}|never ends|asks for a QR code I don't have]",
            "I [don't understand|am lost in] the installation, [step {n}|which cable goes first]",
            "pairing [fails|stops] at step {n} [every time|again|since {day}]",
            "how do I install it [on a brick wall|without drilling|in a rented flat]",
        ),
        ("how to [set up|install] {p}", "pairing [fails|stuck]", "setup [stuck|stops] at step {n}"),
    ),
    "crash": Topic(
        ANY,
        (
            "{p} [crashes|freezes] [when I open a video|after the last update|every morning|on start]",
            "{p} [keeps crashing|keeps freezing] since [{day}|version {n}.{n}|the update]",
            "since the update {p} [hangs|shows a black screen|crashes] [after {n} seconds|all day]",
        ),
        (
            "it [crashes|freezes] [as soon as I press save|every {n} minutes|after the update]",
            "everything [freezes|hangs] since [the update|{day}|version {n}.{n}]",
            "I only get a black screen [since {day}|after the update|on start]",
        ),
        (
            "{p} keeps [crashing|freezing]",
            "it crashes [on start|all day]",
            "black screen [again|since {day}]",
        ),
    ),
    "network": Topic(
        ("hub", "camera", "app"),
        (
            "{p} [goes offline|loses the connection|drops the wifi] [every night|since {day}]",
            "{p} [shows as offline|can't find the wifi|has no signal] [since {day}|upstairs]",
            "the connection to {p} [drops|breaks off] [every {n} minutes|at night|since {day}]",
        ),
        (
            "it [goes offline|loses the wifi] [every night|{n} times a day|since {day}]",
            "the connection [drops|breaks off] [every {n} minutes|at night|after {n} metres]",
            "there is no [wifi signal|connection] [in the garage|upstairs|since {day}]",
        ),
        ("{p} offline", "{p} [offline again|loses wifi]", "[connection drops|offline since {day}]"),
    ),
}

CARE: dict[str, Topic] = {
    "privacy": Topic(
        ANY,
        (
            "please delete [all my data|the personal data|all recordings] from {p}",
            "which personal data does {p} [store|share|send out]",
            "I [request|want] a copy of [all data|the personal data] that {p} holds on me",
        ),
        (
            "please delete all my personal data [under GDPR|from your servers|for good]",
            "which [personal data|data about me] do you [store|keep|pass on]",
            "I [request|ask for] a copy of my data under [GDPR|article 15|privacy law]",
            "your privacy policy [does not say|hides] who [gets|sees] my data",
        ),
        ("delete my data from {p}", "delete [all my|my personal] data", "GDPR [request|copy of my data]"),
    ),
    "feature": Topic(
        ANY,
        (
            "[it would be great if|I wish] {p} had [dark mode|a night mode|bigger text|a widget]",
            "could you add [dark mode|a timer|Polish|a calendar] to {p}",
            "[an idea|a suggestion] for {p}: [a quiet mode|sharing clips|sorting by date]",
        ),
        (
            "could you [please add|add] [dark mode|a weekly summary|Turkish|a holiday mode]",
            "[a suggestion|an idea]: [let us sort by date|a quiet hour at night|bigger buttons]",
            "it would be [great|nice] if [I could rename rooms|alerts had other sounds|it spoke Welsh]",
        ),
        (
            "add dark mode to {p}",
            "[suggestion|idea]: [dark mode|bigger text]",
            "please add [dark mode|a timer]",
        ),
    ),
    "security": Topic(
        ANY,
        (
            "I think [somebody|someone] hacked {p}, [it moved at night|the settings changed]",
            "there is [an unknown device|a stranger|a strange user] [connected to|listed in] {p}",
            "a suspicious [alert|message|mail] about {p} asks for my PIN, is it [phishing|a scam]",
        ),
        (
            "my account was hacked [on {day}|last night|from {city}]",
            "I see [an unknown device|a stranger] from {city} in my account",
            "I got a [suspicious|strange] mail in your name, is that [phishing|a scam]",
            "[somebody|someone] from {city} [used|broke into|got into] my account",
        ),
        ("{p} hacked", "[account hacked|I was hacked]", "is this mail [phishing|a scam]?"),
    ),
}

TOPICS: dict[str, Topic] = {**MONEY, **PARCELS, **USE, **CARE}
CATEGORIES: tuple[str, ...] = tuple(TOPICS)

PRODUCTS: dict[str, tuple[str, ...]] = {
    "app": ("the app", "your app", "the phone app", "the iPhone app", "the Android app", "the mobile app"),
    "web": (
        "the website",
        "your website",
        "the web page",
        "the site",
        "your web portal",
        "the browser version",
    ),
    "hub": ("the hub", "my hub", "the home hub", "the base station", "my new hub", "the smart hub"),
    "camera": (
        "the camera",
        "my camera",
        "the doorbell camera",
        "the outdoor cam",
        "my garden camera",
        "the baby cam",
    ),
}
