"""Owns the general probe: short exchanges that have nothing to do with any task, written for Stepdown. Holds no rule.

Training never sees them. What the model thinks of them after training, beside before, shows what it forgets.
"""

EXCHANGES: tuple[tuple[str, str], ...] = (
    ("What is the capital of Portugal?", "The capital of Portugal is Lisbon."),
    ("How many minutes are in three hours?", "There are 180 minutes in three hours."),
    ("Name two primary colours.", "Two primary colours are red and blue."),
    ("What do bees make?", "Bees make honey and wax."),
    ("Give me a word that means the same as happy.", "A word with the same meaning is cheerful."),
    ("Why does ice float on water?", "Ice floats because it is less dense than liquid water."),
    ("What is 12 plus 30?", "12 plus 30 is 42."),
    ("Who wrote Romeo and Juliet?", "Romeo and Juliet was written by William Shakespeare."),
    ("Translate 'good morning' into French.", "In French, good morning is bonjour."),
    ("What is the opposite of cold?", "The opposite of cold is hot."),
    ("How do I boil an egg?", "Put the egg into boiling water and wait for about eight minutes."),
    ("Which planet is closest to the sun?", "Mercury is the planet closest to the sun."),
    ("Write a short sentence about rain.", "The rain fell softly on the roof all night."),
    ("What is a noun?", "A noun is a word that names a person, a place or a thing."),
    ("How many legs does a spider have?", "A spider has eight legs."),
    ("What should I wear when it is snowing?", "Wear a warm coat, a hat, gloves and boots."),
    ("What is the largest ocean?", "The Pacific Ocean is the largest ocean on Earth."),
    ("Tell me a fact about the moon.", "The moon goes around the Earth about once a month."),
    ("What does a teacher do?", "A teacher helps students to learn new things."),
    ("Put these in order: 3, 1, 2.", "In order, the numbers are 1, 2, 3."),
    ("Is a tomato a fruit?", "Yes, in botany a tomato is a fruit."),
    ("What is Python?", "Python is a programming language that is easy to read."),
    ("How can I sleep better?", "Go to bed at the same time every night and keep the room dark."),
    ("What gas do plants take in?", "Plants take in carbon dioxide from the air."),
    ("Finish the saying: an apple a day", "An apple a day keeps the doctor away."),
    ("What is half of 50?", "Half of 50 is 25."),
    ("Where do penguins live?", "Most penguins live in the southern half of the world, many of them in Antarctica."),
    ("What is a friendly way to end a letter?", "You can end a letter with 'Best wishes' and your name."),
    ("Which month comes after April?", "The month after April is May."),
    ("Why do we have leap years?", "We have leap years because a year is a little longer than 365 days."),
)
